"""Photos that a CSV file lists."""

from pathlib import Path

from PIL import Image

from headstart.datamodules import CsvPhotos
from headstart.tests.material.photo_folders import refusal


def lay_out(root: Path, text: str, encoding: str = "utf-8") -> CsvPhotos:
    for number in range(12):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(root / f"{number}.png")
    (root / "list.csv").write_text(text, encoding=encoding)
    return CsvPhotos(str(root / "list.csv"))


def test_split_column(tmp_path: Path) -> None:
    lines = "label,split,path", "10,train,3.png", "", '9,train,"2.png"', "9,validation,0.png", "10, val, 1.png", ""
    source = lay_out(tmp_path, "\r\n".join(lines), "utf-8-sig")
    train, validation = source.train(), source.validation()
    assert source.name == "list"
    assert train.classes == validation.classes == ("9", "10")
    assert (list(train.names), train.labels.tolist()) == (["3.png", "2.png"], [1, 0])
    assert (list(validation.names), validation.labels.tolist()) == (["0.png", "1.png"], [0, 1])
    assert train.read(0).getpixel((0, 0)) == (3, 0, 0)


def test_labels_of_any_length_and_in_quotes(tmp_path: Path) -> None:
    long, longer = "2" + "1" * 5_000, "1" * 5_002
    quoted = f'0.png,{longer}\n1.png,"{long}"\n2.png, "cats"\n3.png,0{long}\n4.png,\t"cats"\n'
    source = lay_out(tmp_path, f"path, label\n{quoted}")
    assert source.splits()[0].classes == (f"0{long}", long, longer, "cats")


MALFORMED = {
    "": "cannot be read (No columns to parse from file)",
    "path,label,path\n": "it has path, label, path.1",
    "path,label,fold\n": "it has path, label, fold",
    "path,label\n": "lists no photo",
    "path,label\n0.png,ant\n1.png\n2.png,bee,x\n": "Expected 2 fields in line 4, saw 3",
    "path,label\n0.png,ant,x\n": "its rows have more fields than its header",
    "path,label\n0.png,ant\n1.png, \n2.png\n": "row 2 ('1.png') has no label; so do 1 more",
    "path,label\n,ant\n": "row 1 ('') has no path",
    "path,label\n0.png,ant\nnowhere.png,bee\n": "row 2 ('nowhere.png') names no file",
    "path,label\n0.png,ant\n./0.png,bee\n": "row 2 ('./0.png') repeats the photo of an earlier row",
    "path,label,split\n0.png,ant,test\n": "has a split that is none of train, validation, val",
    'path,label\n0.png,ant\n"1.png,bee\n': "EOF inside string",
}


def test_what_is_no_list_of_photos(tmp_path: Path) -> None:
    start = f"file: {tmp_path}"
    for text, expected in MALFORMED.items():
        assert expected in refusal(lay_out(tmp_path, text).train, start=start)
    latin = lay_out(tmp_path, "path,label\n0.png,café\n", "latin-1")
    assert "cannot be read ('utf-8' codec" in refusal(latin.train, start=start)
    for name in ("nowhere.csv", "nul\0"):
        assert "cannot be read (" in refusal(CsvPhotos(str(tmp_path / name)).train, start=start)
