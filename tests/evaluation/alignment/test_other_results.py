"""Results in the output folder are written again if they are the same, and kept if they are others."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headstart import evaluate
from headstart.tests.material.arena import ENTRIES, Arena

MODELS = [entry["model_name"] for entry in ENTRIES]
PAIR = (f"--models=[{MODELS[0]}, {MODELS[1]}]", "--logger=false")
LAYERS = (f"--models=[{MODELS[0]}]", "--layers=[features.3, features.6]", "--logger=false")


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_other_comparisons_documents_and_submissions_are_another_configuration(
    arena: Arena, refused: Callable[..., str], request: pytest.FixtureRequest
) -> None:
    folder = arena.evaluate("cka", *PAIR, output="pair")
    keep, scored = "--overwrite=false", arena.folder / "out"
    submissions = [arena.red([0, 1, 2]).rename(arena.folder / "one.json"), arena.red([3, 4, 5])]
    arena.score(submissions[0], keep)
    search = ("cka-search", "--team=blue", "--size=2")
    arena.evaluate(*search, output="search")
    before = content(folder), content(scored)
    request.getfixturevalue("no_forward_pass")
    for place, options in {
        "pairwise/names": (f"--models=[{MODELS[1]}, {MODELS[0]}]", "--logger=false"),
        "digests/networks, model, pairwise/names": LAYERS,
        "extraction": (*PAIR, "--extraction.precision=bfloat16"),
    }.items():
        text = refused(lambda options=options: arena.evaluate("cka", *options, output="pair"))
        assert f"error: output: '{folder}/cka.json' holds results of another configuration ({place});" in text
    assert "(digests/submission)" in refused(lambda: arena.score(submissions[1], keep))
    assert "challenge" in refused(lambda: arena.score(submissions[0], "--challenge=contract", keep))
    for path, name in ((arena.registry, "registry"), (arena.catalog, "catalog")):
        text = path.read_text()
        path.write_text(text + "\n")
        assert f"(digests/{name})" in refused(lambda: arena.score(submissions[0], keep))
        path.write_text(text)
    assert (content(folder), content(scored)) == before
    assert "(size)" in refused(lambda: arena.evaluate("cka-search", "--team=blue", "--size=3", output="search"))


def test_models_then_layers_by_default(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(arena.folder)
    documents = [f"--registry={arena.registry}", f"--catalog={arena.catalog}", "--extraction.num_workers=0"]
    for options in (PAIR, LAYERS, PAIR, LAYERS):
        evaluate.main(["cka", *documents, *options])
    for folder in ("cka", "cka-layers"):
        assert set(content(arena.folder / "runs" / folder)) == {"cka.json", "heatmap.png"}
    # Figures of overwritten results do not stay.
    evaluate.main(["cka", *documents, *PAIR, "--figure_formats=[png, svg]"])
    assert "heatmap.svg" in content(arena.folder / "runs" / "cka")
    evaluate.main(["cka", *documents, *LAYERS, "--output=runs/cka", "--overwrite=true"])
    assert set(content(arena.folder / "runs" / "cka")) == {"cka.json", "heatmap.png"}
