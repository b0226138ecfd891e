"""Submissions that are data sets are read like the same submissions as files."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.contract import submission_sources
from headstart.contract.problems import ContractError
from headstart.contract.submission_sources import read_submission
from headstart.contract.submissions import Submission
from headstart.tests.material.contract_documents import make_catalog, make_registry

NAMES = ["one", "two", "three"]
BLUE: list[dict[str, Any]] = [{"model_name": name, "layer_name": "fc"} for name in NAMES]
RED: list[dict[str, Any]] = [{"dataset_name": "photos", "image_identifier": f"{i}.png"} for i in (4, 0, 2)]

Read = Callable[..., Submission]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    documents = make_registry(NAMES), make_catalog(("photos", f"{i}.png") for i in range(5))
    return lambda source: read_submission(str(source), *documents)


def refusal(read: Read, source: Any) -> str:
    with pytest.raises(ContractError) as caught:
        read(source)
    assert str(caught.value).startswith(f"submission {source}: ")
    return "; ".join(map(str, caught.value.problems))


def save(folder: Path, rows: list[dict[str, Any]], form: str) -> Path:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_list(rows)
    folder.mkdir()
    if form == "saved":
        made.save_to_disk(str(folder))
    elif form == "saved splits":
        datasets.DatasetDict({"train": made}).save_to_disk(str(folder))
    else:
        getattr(made, f"to_{form}")(str(folder / f"train.{form}"))
    return folder


def test_local_copies(tmp_path: Path, read: Read) -> None:
    file = tmp_path / "entry.json"
    for key, rows in (("models", BLUE), ("differentiating_images", RED)):
        file.write_text(json.dumps({key: rows}))
        expected = read(file)
        for form in ("parquet", "csv", "saved", "saved splits"):
            submission = read(save(tmp_path / f"{key} as {form}", rows, form))
            for name in ("team", "models", "stimuli", "contract_version"):
                assert getattr(submission, name) == getattr(expected, name), (form, name)
            assert json.loads(submission.content) == json.loads(expected.content), form
    # Empty cells say nothing.
    rows = [{"model_name": "one", "layer_name": None}, {"model_name": "two", "layer_name": "fc"}]
    assert read(save(tmp_path / "copy", rows, "parquet")).models == ("one", "two")


def test_one_split_of_the_size_of_a_file(tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_list(BLUE)
    datasets.DatasetDict({"spring": made, "autumn": made}).save_to_disk(str(tmp_path / "splits"))
    assert "has the splits spring, autumn; a submission has one" in refusal(read, tmp_path / "splits")
    folder = save(tmp_path / "copy", RED, "parquet")
    monkeypatch.setattr(submission_sources, "MAX_BYTES", len(read(folder).content))
    assert read(folder).team == "red"
    monkeypatch.setattr(submission_sources, "MAX_BYTES", 100)
    assert "is larger as a file than the limit of 100 bytes" in refusal(read, folder)


def test_folders_that_are_named_as_a_reader_of_datasets_or_as_a_pattern(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "csv", BLUE[:2], "csv")
    assert read("csv").models == ("one", "two")
    save(tmp_path / "ours", BLUE[1:], "csv")
    for name in ("ours*", "our?", "[ours]", "o::urs"):
        save(tmp_path / name, BLUE[:2], "csv")
        assert "rename it" in refusal(read, tmp_path / name)


def test_breaches_of_the_contract_are_named(tmp_path: Path, read: Read) -> None:
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([{**BLUE[0], "layer_name": "head"}, BLUE[1]], '/models/0/layer_name "head": disagrees with the registry'),
        ([{**RED[0], "label": 1}, RED[1]], "it has dataset_name, image_identifier, label"),
        ([{"name": "one"}], "must have the columns model_name, layer_name, source (Blue Team) or dataset_name, image"),
        ([{"model_name": 1}, {"model_name": 2}], "/models/0/model_name 1: must be a valid string"),
    ]
    for number, (rows, words) in enumerate(cases):
        assert words in refusal(read, save(tmp_path / f"{number}", rows, "parquet"))


def test_names_on_the_hub(read: Read) -> None:
    for source, words in {
        "hf://nobody/none": "cannot be read as a data set (",
        "hf://nobody": "hf:// needs an owner and a name, hf://owner/name",
        "hf://../elsewhere": "hf:// needs an owner",
    }.items():
        text = refusal(read, source)
        assert words in text
        assert text.endswith("check its name and the connection, or name a folder")


def test_name_and_revision_reach_the_hub(tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    requests: list[tuple[str, str | None]] = []

    def load(name: str, revision: str | None, streaming: bool) -> Any:
        assert streaming
        requests.append((name, revision))
        return datasets.IterableDatasetDict({"train": datasets.Dataset.from_list(RED).to_iterable_dataset()})

    monkeypatch.setattr(datasets, "load_dataset", load)
    for source in ("hf://team/entry", "hf://datasets/team/entry@v2"):
        assert [stimulus.image_identifier for stimulus in read(source).stimuli] == ["4.png", "0.png", "2.png"]
    assert requests == [("team/entry", None), ("team/entry", "v2")]


def test_missing_package_is_named(tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'headstart[datasets]'" in refusal(read, tmp_path)
