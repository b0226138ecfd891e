"""Photos in files: what they decode to, and when their fingerprint changes."""

import hashlib
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, PhotoSource, require_classes
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.output.errors import UserError

COLOR = (200, 100, 50)
CLASSES = ("cats", "dogs")


def photo(size: tuple[int, int] = (48, 32)) -> Image.Image:
    return Image.new("RGB", size, COLOR)


def one(path: Path) -> PhotoFiles:
    return PhotoFiles(path.parent, [path.name], [0], CLASSES)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    for name, shade in (("a.png", 0), ("b.png", 100), ("c.png", 200)):
        Image.new("RGB", (4, 4), (shade, shade, shade)).save(tmp_path / name)
    return tmp_path


def fingerprint(
    root: Path,
    names: Sequence[str] = ("a.png", "b.png", "c.png"),
    labels: Sequence[int] = (0, 1, 1),
    classes: Sequence[str] = CLASSES,
) -> str:
    return PhotoFiles(root, names, labels, classes).fingerprint()


def test_fingerprint_changes_with_content(three: Path) -> None:
    before = fingerprint(three)
    (three / "b.png").rename(three / "d.png")
    renamed = fingerprint(three, names=("a.png", "d.png", "c.png"))
    (three / "d.png").rename(three / "b.png")
    changed = {
        "name": renamed,
        "label": fingerprint(three, labels=(0, 0, 1)),
        "class": fingerprint(three, classes=("cats", "wolves")),
        "order": fingerprint(three, names=("a.png", "c.png", "b.png")),
        "fewer": fingerprint(three, names=("a.png", "b.png"), labels=(0, 1)),
    }
    content = bytearray((three / "b.png").read_bytes())
    content[-1] ^= 1
    (three / "b.png").write_bytes(content)
    changed["byte"] = fingerprint(three)
    assert before not in changed.values()
    assert len(set(changed.values())) == len(changed)


def test_digests_are_of_the_bytes_alone(three: Path) -> None:
    photos = PhotoFiles(three, ["a.png", "b.png", "c.png"], [0, 1, 1], CLASSES)
    expected = [hashlib.sha256((three / name).read_bytes()).hexdigest() for name in photos.names]
    assert photos.digests() == expected
    assert photos.subset(np.array([2, 0])).digests() == [expected[2], expected[0]]
    (three / "b.png").rename(three / "d.png")
    assert PhotoFiles(three, ["d.png"], [0], CLASSES).digests() == [expected[1]]
    assert Stimuli(["s"], [three / "d.png"]).digests() == [expected[1]]


def test_fingerprint_is_what_earlier_results_name(three: Path) -> None:
    contents = [hashlib.sha256((three / name).read_bytes()).digest() for name in ("a.png", "b.png")]
    parts = b"cats\0dogs" + b"\0a.png\x000\0" + contents[0] + b"\0b.png\x001\0" + contents[1]
    assert fingerprint(three, ("a.png", "b.png"), (0, 1)) == hashlib.sha256(parts).hexdigest()


def test_any_damage_to_a_png_is_an_os_error(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    photo().save(path)
    whole = path.read_bytes()
    refused = 0
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            one(path).read(0)
        except OSError:
            refused += 1
    assert refused > len(whole) // 2


@pytest.mark.parametrize(("form", "error"), [("AVIF", RuntimeError), ("DDS", NotImplementedError)])
def test_damage_of_any_kind_is_an_os_error(tmp_path: Path, form: str, error: type[Exception]) -> None:
    if form not in Image.registered_extensions().values():
        pytest.skip("Pillow is too old")
    path = tmp_path / "cat.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path, form)
    whole = path.read_bytes()
    faults: list[OSError] = []
    for position in range(0, 300, 4):
        path.write_bytes(whole[:position] + b"\0\0\0\0" + whole[position + 4 :])
        try:
            one(path).read(0)
        except OSError as fault:
            faults.append(fault)
    assert any(isinstance(fault.__cause__, error) for fault in faults)
    assert {fault.errno for fault in faults} == {None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "options"),
    [("JPEG", {"progressive": True}), pytest.param("WEBP", {"quality": 30}, marks=pytest.mark.slow)],
)
def test_lack_of_memory_is_never_taken_for_damage(tmp_path: Path, form: str, options: dict[str, int]) -> None:
    resource = pytest.importorskip("resource")
    path, memory = tmp_path / "cat", Path("/proc/self/statm")
    if not memory.exists():
        pytest.skip("the limit is what this process has and some more")
    coarse = Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8))
    coarse.resize((5600, 4200)).save(path, form, **options)
    photo().save(tmp_path / "small", form)
    one(tmp_path / "small").read(0)

    def decode(megabytes: int) -> None:
        taken = int(memory.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + megabytes * 2**20,) * 2)
        try:
            one(path).read(0)
        except MemoryError:
            os._exit(1)
        except OSError as error:
            os._exit(2 if error.errno is None else 1)
        os._exit(0)

    codes = set()
    for megabytes in (0, 40, 80, 100, 120, 140, 160, 180, 1000):
        process = multiprocessing.get_context("fork").Process(target=decode, args=(megabytes,))
        process.start()
        process.join(60)
        codes.add(process.exitcode)
    assert codes == {0, 1}


def test_absurd_size_is_an_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo().save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(OSError, match=r"^it has more than [\d,]+ pixels, which could be a decompression bomb$"):
        one(tmp_path / "bomb.png").read(0)


@pytest.mark.filterwarnings("error")
def test_a_large_picture_is_decoded_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo().save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", photo().width * photo().height - 1)
    assert one(tmp_path / "large.png").read(0).size == photo().size


def test_a_source_without_a_name_is_called_by_its_class() -> None:
    class Nameless(PhotoSource):
        def train(self) -> Photos:
            raise NotImplementedError

        def validation(self) -> Photos:
            raise NotImplementedError

    class Named(Nameless):
        name = "pets"

    assert (Nameless().name, Named().name) == ("Nameless", "pets")


@pytest.mark.parametrize(
    ("labels", "classes", "reason"),
    [
        ([0, 0], ("cats",), "photos are of 1 class .cats."),
        ([1, 1], CLASSES, "no training photo of class cats"),
    ],
)
def test_classes_that_cannot_be_distinguished(labels: list[int], classes: tuple[str, ...], reason: str) -> None:
    photos = PhotoFiles(Path(), ["a.png", "b.png"], labels, classes)
    with pytest.raises(UserError, match=reason):
        require_classes(photos, "training")


def test_names_of_classes_that_look_alike_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    alike = {
        "case": ("Katze", "KATZE", "'Katze' and 'KATZE'"),
        "Unicode form": ("caf\u00e9", "cafe\u0301", r"'caf\xe9' and 'cafe\u0301'"),
        "space": ("hot dog", "hot\u00a0dog", r"'hot dog' and 'hot\xa0dog'"),
        "sharp s": ("Stra\u00dfe", "STRASSE", r"'Stra\xdfe' and 'STRASSE'"),
    }
    for kind, (one, other, listed) in alike.items():
        require_classes(PhotoFiles(Path(), ["a", "b", "c"], [0, 1, 2], (one, "zebra", other)), "training")
        assert f"WARNING: classes {listed} differ" in " ".join(capsys.readouterr().out.split()), kind
    require_classes(PhotoFiles(Path(), ["a", "b"], [0, 1], ("hotdog", "hot dog")), "training")
    assert not capsys.readouterr().out
