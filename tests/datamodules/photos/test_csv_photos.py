"""Photos that a CSV file lists."""

from pathlib import Path

import pytest
from PIL import Image

from headstart.datamodules import CsvPhotos
from headstart.output.errors import UserError


def lay_out(root: Path, text: str, encoding: str = "utf-8") -> CsvPhotos:
    for number in range(12):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(root / f"{number}.png")
    (root / "list.csv").write_text(text, encoding=encoding)
    return CsvPhotos(str(root / "list.csv"))


def refusal(source: CsvPhotos) -> str:
    with pytest.raises(UserError) as caught:
        source.train()
    message = str(caught.value)
    assert message.startswith("file: ")
    assert str(source.file) in message
    assert "\n" not in message
    return message


def test_split_column(tmp_path: Path) -> None:
    source = lay_out(
        tmp_path,
        'label,split,path\r\n10,train,3.png\r\n\r\n9,train,"2.png"\r\n9,validation,0.png\r\n10, val, 1.png\r\n',
        "utf-8-sig",
    )
    train, validation = source.train(), source.validation()
    assert source.name == "list"
    assert train.classes == validation.classes == ("9", "10")
    assert list(train.names) == ["3.png", "2.png"]
    assert train.labels.tolist() == [1, 0]
    assert list(validation.names) == ["0.png", "1.png"]
    assert validation.labels.tolist() == [0, 1]
    assert train.read(0).getpixel((0, 0)) == (3, 0, 0)


def test_labels_of_any_length_and_in_quotes(tmp_path: Path) -> None:
    long, longer = "2" + "1" * 5_000, "1" * 5_002
    quoted = f'0.png,{longer}\n1.png,"{long}"\n2.png, "cats"\n3.png,0{long}\n4.png,\t"cats"\n'
    source = lay_out(tmp_path, f"path, label\n{quoted}")
    assert source.splits()[0].classes == (f"0{long}", long, longer, "cats")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "perhaps split; it has none"),
        ("path,label,path\n", "it has path, label, path"),
        ("path,label,fold\n", "it has path, label, fold"),
        ("path,label\n", "lists no photo"),
        ("path,label\n0.png,ant\n1.png\n2.png,bee,x\n", "malformed lines; line 3: 1 fields; line 4: 3 fields"),
        ("path,label\n,ant\n1.png, \n", "line 2: no path; line 3: no label"),
        ("path,label\n0.png,ant\nnowhere.png,bee\n", "line 3: there is no file 'nowhere.png'"),
        ("path,label\n0.png,ant\n./0.png,bee\n", "line 3: './0.png' once more, after line 2"),
        ("path,label,split\n0.png,ant,test\n", "line 2: split 'test' is none of train, validation, val"),
        ('path,label\n0.png,ant\n"1.png,bee\n', "line 3: unexpected end of data"),
        ("path,label\n" + "a.png,b\n" * 7, "line 6: there is no file 'a.png'; 2 more"),
    ],
)
def test_malformed(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(lay_out(tmp_path, text))


def test_another_encoding(tmp_path: Path) -> None:
    assert "must be in UTF-8; line 2 is not" in refusal(lay_out(tmp_path, "path,label\n0.png,café\n", "latin-1"))


@pytest.mark.parametrize("name", ["nowhere.csv", "nul\0"])
def test_no_file(tmp_path: Path, name: str) -> None:
    assert "cannot be read (" in refusal(CsvPhotos(str(tmp_path / name)))
