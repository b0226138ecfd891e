"""The operator's documents: the model registry and the stimuli catalog."""

import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.documents import catalog_path, read_catalog, read_registries, read_registry, registry_path
from headstart.contract.problems import ContractError, Problem
from headstart.output.errors import UserError
from headstart.tests.material.arena import make_entry

CONFIGS = Path(__file__).parents[2] / "configs"


def entry(name: str, **changes: Any) -> dict[str, Any]:
    return make_entry(name, "head", "pool", 8, **changes)


def stimulus(identifier: str, dataset: str = "photos") -> str:
    return json.dumps({"dataset_name": dataset, "image_identifier": identifier})


def write(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "document"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def registry_problems(tmp_path: Path, content: Any) -> list[Problem]:
    with pytest.raises(ContractError, match=r"^model registry ") as caught:
        read_registry(write(tmp_path, content))
    return caught.value.problems


def catalog_problems(tmp_path: Path, *lines: str | bytes) -> list[Problem]:
    content = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
    with pytest.raises(ContractError, match=r"^stimuli catalog ") as caught:
        read_catalog(write(tmp_path, content))
    return caught.value.problems


def test_both_forms_of_a_registry(tmp_path: Path) -> None:
    entries = [entry("b"), entry("a", source="custom", notes="x")]
    for content in (entries, {"models": entries}, {"contract_version": "1.0", "models": entries}):
        path = write(tmp_path, content)
        registry = read_registry(path)
        assert list(registry.entries) == ["b", "a"]
        assert registry.entries["a"].model_dump(mode="json", exclude_unset=True) == entries[1]
        assert registry.path == path
        (digest,) = subprocess.check_output(["sha256sum", "--", path.name], cwd=tmp_path, text=True).split()[:1]
        assert registry.sha256 == digest


def test_several_registries_find_weights_from_their_own_folders(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.safetensors").touch()
        entries = [entry(name, weights="own.safetensors"), entry(f"{name} plain")]
        (tmp_path / name / "registry.json").write_text(json.dumps(entries))
    paths = [tmp_path / name / "registry.json" for name in ("second", "first")]
    together = read_registries(paths)
    assert list(together.entries) == ["second", "second plain", "first", "first plain"]
    assert together.weights_file("first") == tmp_path / "first" / "own.safetensors"
    assert together.weights_file("second") == tmp_path / "second" / "own.safetensors"
    assert together.weights_file("first plain") is None
    assert together.sha256 != read_registries(paths[::-1]).sha256
    assert read_registries(paths[:1]).sha256 == read_registry(paths[0]).sha256
    # None may have a name of another's.
    for path, name in zip(paths, ("Model", "model"), strict=True):
        path.write_text(json.dumps([entry(name)]))
    with pytest.raises(UserError, match=r"^registry: 'model' is in .*second/registry.json' and in .*first/"):
        read_registries(paths)
    with pytest.raises(UserError, match=r"^registry: an empty list"):
        read_registries([])


def test_problems_of_a_registry(tmp_path: Path) -> None:
    entries = [entry("caf\u00e9"), entry("b"), entry("CAFE\u0301"), entry("b")]
    for prefix in ("", "/models"):
        problems = registry_problems(tmp_path, {"models": entries} if prefix else entries)
        assert [problem.pointer for problem in problems] == [f"{prefix}/2/model_name", f"{prefix}/3/model_name"]
        assert f'the same name as {prefix}/0/model_name, "caf\\u00e9"' in problems[0].rule
    # All at once.
    entries = [entry("a", output_dim=0), entry("b"), entry("c", source="keras", weights=3)]
    pointers = [problem.pointer for problem in registry_problems(tmp_path, entries)]
    assert pointers == ["/0/output_dim", "/2/source", "/2/weights"]
    short = {name: value for name, value in entry("a").items() if name not in ("input_size", "output_dim")}
    cases: list[tuple[Any, str, str]] = [
        ([], "", "must have at least 1 items, not 0"),
        ({"models": []}, "/models", "must have at least 1 items, not 0"),
        ({"contract_version": "2.0", "models": [entry("a")]}, "/contract_version", 'contract version "2.0" is not'),
        ({"contract_version": "1.0", "models": [short]}, "/models/0/input_size", "is required"),
        (b'{"models": [], "models": []}', "", 'repeats the key "models" in one object'),
        (b"3", "", "must be an"),
    ]
    for content, pointer, rule in cases:
        problem = registry_problems(tmp_path, content)[0]
        assert (problem.pointer, problem.rule[: len(rule)]) == (pointer, rule)
    for document in ([short], {"models": [short]}, {"contract_version": "1.1", "models": [short]}):
        assert read_registry(write(tmp_path, document)).entries["a"].output_dim is None


def test_absent_and_too_large_documents(tmp_path: Path) -> None:
    path = tmp_path / "large"
    documents: list[tuple[int, Callable[[Path], object]]] = [(16_000_001, read_registry), (64_000_001, read_catalog)]
    for size, read in documents:
        with pytest.raises(ContractError, match="there is no such file"):
            read(tmp_path / "absent")
        with path.open("wb") as file:
            file.truncate(size)
        with pytest.raises(ContractError, match=f"is larger than the limit of {size - 1:,} bytes"):
            read(path)


def test_catalog_whose_lines_end_with_a_line_feed_alone(tmp_path: Path) -> None:
    lines = [stimulus("b/2.png"), "", stimulus("a/1.png", "other"), "  \t", stimulus("é.png") + "\r"]
    content = ("\n".join(lines) + "\n\n").encode()
    catalog = read_catalog(write(tmp_path, content))
    assert [(stimulus.dataset_name, stimulus.image_identifier) for stimulus in catalog.stimuli] == [
        ("photos", "b/2.png"),
        ("other", "a/1.png"),
        ("photos", "é.png"),
    ]
    assert catalog.sha256 == hashlib.sha256(content).hexdigest()
    problems = catalog_problems(tmp_path, stimulus("a\u2028.png"), stimulus("b.png"), stimulus("c\u2029.png"))
    assert [problem.rule.partition(":")[0] for problem in problems] == ["line 1", "line 3"]
    assert all("no backslashes, control or invisible characters" in problem.rule for problem in problems)


def test_problems_of_a_catalog_name_their_lines(tmp_path: Path) -> None:
    lines: list[tuple[str | bytes, str | None]] = [
        (stimulus("a.png"), None),
        ("", None),
        (stimulus("../a.png"), "/image_identifier"),
        ('{"dataset_name": "photos", "dataset_name": "photos", "image_identifier": "b.png"}', ""),
        (b'{"dataset_name": "photos", "image_identifier": "\xff"}', ""),
        ('{"dataset_name": "photos"}, {}', ""),
        (stimulus("a.png"), ""),
    ]
    problems = catalog_problems(tmp_path, *(line for line, _ in lines))
    expected = [(f"line {number}", pointer) for number, (_, pointer) in enumerate(lines, 1) if pointer is not None]
    assert [(problem.rule.partition(":")[0], problem.pointer) for problem in problems] == expected


def test_stimuli_that_come_twice(tmp_path: Path) -> None:
    for spelling in ("dir/\u00e9.png", "dir/e\u0301.png", "\uff44ir/\u00e9.png"):
        lines = [stimulus("dir/e.png"), stimulus("dir/\u00e9.png"), "", stimulus(spelling)]
        (problem,) = catalog_problems(tmp_path, *lines)
        assert problem.rule == "line 4: the same stimulus as in line 2; stimuli must be unique"
        assert problem.value == json.dumps(f"photos/{spelling}")
    # Others differ in case, or in the data set.
    names = ["a.jpg", "A.JPG", "dir/\u00e9.png", "dir/\u00c9.png", "Dir/\u00e9.png"]
    lines = [*map(stimulus, names), stimulus("a.jpg", "other")]
    catalog = read_catalog(write(tmp_path, "\n".join(lines).encode()))
    assert [stimulus.image_identifier for stimulus in catalog.stimuli] == [*names, "a.jpg"]


def test_datasets_whose_roots_one_variable_would_name(tmp_path: Path) -> None:
    for one, other in (("a-b", "a_b"), ("v1.0", "V1-0")):
        problems = catalog_problems(
            tmp_path, *(stimulus(f"{i}", name) for i, name in enumerate((one, other, "c", other)))
        )
        variable = f"HACKATHON_DATASET_ROOT_{re.sub('[^A-Z0-9]', '_', one.upper())}"
        rule = f'line 2: shares the variable {variable} with data set "{one}"; rename one of them'
        assert problems == [Problem("/dataset_name", f'"{other}"', rule)]


def test_problems_of_a_catalog_of_nothing_and_of_something_else(tmp_path: Path) -> None:
    for content in ("", "\n \n"):
        (problem,) = catalog_problems(tmp_path, content)
        assert problem.rule == "is empty; one line per stimulus is needed"
    for line, last in (("x", 1000), (stimulus("a.png"), 1001)):
        problems = catalog_problems(tmp_path, *[line] * 5000)
        assert len(problems) == 1001
        assert problems[-1].rule == f"lines after line {last} were not read"
    assert problems[-2].rule == "line 1001: the same stimulus as in line 1; stimuli must be unique"


def test_choice_of_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/operator")
    cases: list[tuple[Any, str, str]] = [
        (registry_path, "HACKATHON_MODEL_REGISTRY", "model_registry.json"),
        (catalog_path, "HACKATHON_STIMULI_CATALOG", "stimuli_catalog.jsonl"),
    ]
    for choose, variable, shipped in cases:
        for value, path in {"": CONFIGS / shipped, "~/file": Path("/home/operator/file")}.items():
            monkeypatch.setenv(variable, value)
            assert choose(None) == path
        assert choose("chosen") == Path("chosen")
    # Shipped ones are found from any folder.
    monkeypatch.chdir(tmp_path)
    name = "configs/registry/embedded.json"
    assert registry_path(name) == CONFIGS / "registry" / "embedded.json"
    assert "drawn_objects" in read_registry(registry_path(name)).entries
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    assert registry_path(name) == Path(name)
