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
    "": "perhaps split; it has none",
    "path,label,path\n": "it has path, label, path",
    "path,label,fold\n": "it has path, label, fold",
    "path,label\n": "lists no photo",
    "path,label\n0.png,ant\n1.png\n2.png,bee,x\n": "malformed lines; line 3: 1 fields; line 4: 3 fields",
    "path,label\n,ant\n1.png, \n": "line 2: no path; line 3: no label",
    "path,label\n0.png,ant\nnowhere.png,bee\n": "line 3: there is no file 'nowhere.png'",
    "path,label\n0.png,ant\n./0.png,bee\n": "line 3: './0.png' once more, after line 2",
    "path,label,split\n0.png,ant,test\n": "line 2: split 'test' is none of train, validation, val",
    'path,label\n0.png,ant\n"1.png,bee\n': "line 3: unexpected end of data",
    "path,label\n" + "a.png,b\n" * 7: "line 6: there is no file 'a.png'; 2 more",
}


def test_what_is_no_list_of_photos(tmp_path: Path) -> None:
    start = f"file: {tmp_path}"
    for text, expected in MALFORMED.items():
        assert expected in refusal(lay_out(tmp_path, text).train, start=start)
    latin = lay_out(tmp_path, "path,label\n0.png,café\n", "latin-1")
    assert "must be in UTF-8; line 2 is not" in refusal(latin.train, start=start)
    for name in ("nowhere.csv", "nul\0"):
        assert "cannot be read (" in refusal(CsvPhotos(str(tmp_path / name)).train, start=start)
