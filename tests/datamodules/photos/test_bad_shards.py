"""Shards that are damaged, cut off, joined or compressed, or hold links: one clear line each."""

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.datamodules import WebDatasetShards
from headstart.output.errors import UserError
from headstart.tests.material.shards import compress, png, reds, write_shard, write_tar


def cut(size: int) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:size])

    return apply


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:4200] = bytes(range(104))
    path.write_bytes(content)


# A sample takes a header of pax, its content and a header and content of each of two members: 4,096 bytes.
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (cut(4096 * 2 + 512 * 3 + 20), r"is cut off \(in a member\); 2 pictures before are intact; .*tar --sort=name"),
        (cut(4096 * 3), r"is cut off \(there is no end mark\); 3 pictures before are intact"),
        (cut(4096 * 2 + 100), r"is cut off \(in a header\); 2 pictures before are intact"),
        (cut(0), r"is cut off \(there is no end mark\); 0 pictures before are intact"),
        (damage, r"is damaged; 1 pictures before are intact; fetch or write it again"),
        (compress, r"is compressed \(gzip\), .*unpack it to a plain \.tar"),
        (lambda path: path.write_bytes(b"no archive" * 100), r"is no tar archive"),
        (lambda path: write_tar(path, []), r"holds no picture; leave it out"),
        (lambda path: write_tar(path, [("a.txt", b"")]), r"the sample 'a' of .* \(\.txt\) has no picture"),
        (lambda path: write_tar(path, [("a.png", b"")] * 2), r"the sample 'a' of .* has several pictures"),
        (
            lambda path: write_tar(path, [("a.png", b""), ("b.png", b""), ("a.png", b"")]),
            r"the key 'a' is used twice in the shard .*b\.tar; give every sample a key of its own",
        ),
        (lambda path: write_tar(path, [("a.png", b""), ("a.cls", b"\xff")]), r"the member 'a\.cls' .* is not text"),
        (lambda path: path.unlink(), r"the file .* cannot be read \(No such file or directory\)"),
    ],
)
def test_bad_shards(tmp_path: Path, change: Callable[[Path], None], expected: str) -> None:
    good, bad = write_shard(tmp_path / "a.tar", range(5)), write_shard(tmp_path / "b.tar", range(10, 15))
    change(bad)
    with pytest.raises(UserError) as caught:
        WebDatasetShards([str(good), str(bad)]).train()
    message = str(caught.value)
    assert re.search(expected, message), message
    assert message.startswith("train: the ")
    assert str(bad) in message
    assert "\n" not in message


def pack(root: Path, *options: str) -> str:
    """Pack a picture, links to it and files with holes by GNU's tar."""
    (root / "a.png").write_bytes(png(1))
    (root / "b.png").hardlink_to(root / "a.png")
    (root / "c.png").symlink_to("a.png")
    for name, parts in (("d.bin", 30), ("e.png", 30)):
        with (root / name).open("wb") as file:
            for part in range(parts):
                file.seek(200_000 * part)
                file.write(b"part")
    subprocess.run(["tar", "-C", str(root), "-cf", str(root / "a.tar"), *options], check=True)
    return str(root / "a.tar")


needs_gnu_tar = pytest.mark.skipif(
    shutil.which("tar") is None or b"GNU" not in subprocess.run(["tar", "--version"], capture_output=True).stdout,
    reason="there is no GNU tar",
)
SPARSE = ["--format=gnu", *(f"--format=pax --sparse-version={version}" for version in ("0.0", "0.1", "1.0"))]


@needs_gnu_tar
@pytest.mark.parametrize("form", ["--format=gnu", "--format=pax"])
def test_links_are_errors(tmp_path: Path, form: str) -> None:
    given = pack(tmp_path, form, "a.png", "b.png")
    with pytest.raises(UserError, match=r"^train: the member 'b\.png' .*a\.tar is a hard link, .*--hard-dereference$"):
        WebDatasetShards(given).train()
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", given, form, "a.png", "c.png"], check=True)
    with pytest.raises(UserError, match=r"^train: the member 'c\.png' .*a\.tar is a symbolic link, .*--dereference$"):
        WebDatasetShards(given).train()
    options = [form, "--dereference", "--hard-dereference", "a.png", "b.png", "c.png"]
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", given, *options], check=True)
    assert reds(WebDatasetShards(given).pictures()) == [1, 1, 1]


@needs_gnu_tar
@pytest.mark.parametrize("form", SPARSE)
def test_sparse_pictures_are_errors(tmp_path: Path, form: str) -> None:
    given = pack(tmp_path, *form.split(), "--sparse", "d.bin", "a.png")
    assert reds(WebDatasetShards(given).pictures()) == [1], "other sparse files are passed over"
    options = [*form.split(), "--sparse", "a.png", "d.bin", "e.png"]
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", given, *options], check=True)
    with pytest.raises(
        UserError, match=r"^train: the member '.*e\.png' .*a\.tar is a sparse file, .*without --sparse$"
    ):
        WebDatasetShards(given).train()


def test_data_behind_the_end_mark_are_an_error(tmp_path: Path) -> None:
    one, other = (write_shard(tmp_path / f"{red}.tar", [red]) for red in range(2))
    with one.open("ab") as file:
        file.write(bytes(2**21))
    assert reds(WebDatasetShards(str(one)).pictures()) == [0], "zeros only pad the archive"
    with one.open("ab") as file:
        file.write(other.read_bytes())
    with pytest.raises(UserError, match=r"^train: the shard .*0\.tar has data after its end mark, .*--ignore-zeros"):
        WebDatasetShards(str(one)).train()


@pytest.mark.parametrize(
    "record",
    [
        b"000 path=a\n",
        b"xxx path=a\n",
        b"-5 path=a\n",
        b" path=a\n",
        b"3 path=a\n",
        b"99 path=a\n",
        b"1" * 5000 + b" path=a",
        b"11 size=x1\n",
        b"12 size=-10\n",
        b"8 size=\n",
        b"9 size=\xb2\n",
    ],
)
def test_damaged_extended_headers(tmp_path: Path, record: bytes) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind, content in (
            ("a.png", tarfile.REGTYPE, b""),
            ("x", tarfile.XHDTYPE, record),
            ("b.png", tarfile.REGTYPE, b""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(UserError, match=r"^train: the shard .*a\.tar is damaged; 1 pictures before are intact"):
        WebDatasetShards(str(path)).train()


def test_a_size_that_no_memory_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, headers in (("a.png", {}), ("b.png", {"size": "999999999999999999"})):
            member = tarfile.TarInfo(name)
            member.pax_headers = headers
            archive.addfile(member)
    with pytest.raises(
        UserError, match=r"^train: the shard .* is cut off \(in a member\); 1 pictures before are intact"
    ):
        WebDatasetShards(str(path)).train()


def test_bad_json(tmp_path: Path) -> None:
    for content, problem in (
        (b"[1]", "is not a JSON object"),
        (b'{"k": [1]}', "has no text or whole number as 'k'"),
        (b"[" * 100_000, "is not a JSON object"),
    ):
        path = write_tar(tmp_path / "a.tar", [("a.png", b""), ("a.json", content)])
        with pytest.raises(UserError, match=f"^train: the member 'a.json' of the shard .* {problem}"):
            WebDatasetShards(str(path), label="k").train()
