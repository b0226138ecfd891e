"""Compare what the commands of two checkouts write, print and return, before and after a change that must keep them.

    python -m scripts.compare_behaviour capture BEFORE /tmp/before --shared=../shared
    python -m scripts.compare_behaviour capture . /tmp/after --shared=../shared
    python -m scripts.compare_behaviour compare /tmp/before /tmp/after

Times, versions and commits do not count; every other number, text, array and exit code does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonargparse
import numpy as np
import yaml

# Keys whose values differ between two runs of the same code.
PASSING = re.compile(r"(.*_)?seconds|timings|git|versions|time|timestamp|environment|times|log")
FEW = ["--data.orderings=4", "--data.max_samples=60"]
MOBILENETS = {"imagenet": "imagenet", "birds": "inat_birds", "insects": "inat_insects"}


def write_registry(folder: Path, shared: Path) -> None:
    """Write a registry of three local networks, with paths that both checkouts find.

    Args:
        folder: Where `registry.json` goes.
        shared: The folder of shared photos and weights.
    """
    preprocess = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "resize": 256, "crop": 224}
    models = [
        {
            "model_name": f"mobilenet_v2_{name}",
            "source": "torchvision",
            "weights": str(shared / f"weights/mobilenet_v2_{file}.safetensors"),
            "layer": "penultimate",
            "embedding": "flatten",
            "input_size": [224, 224],
            "preprocess": preprocess,
            "output_dim": 1280,
        }
        for name, file in MOBILENETS.items()
    ]
    small = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "resize": 64, "crop": 64}
    models += [
        {
            "model_name": name,
            "source": source,
            "weights": None,
            "layer": layer,
            "embedding": None,
            "input_size": [64, 64],
            "preprocess": small,
            "output_dim": width,
            "model_parameters": parameters,
        }
        for name, source, layer, width, parameters in (
            ("resnet18_random", "torchvision", "penultimate", 512, {"name": "resnet18"}),
            ("vit_random", "timm", "blocks.1", 192, {"model_name": "vit_tiny_patch16_224", "img_size": 64}),
        )
    ]
    for entry in models:
        if entry["embedding"] is None:
            entry.pop("embedding")
            entry["embedding"] = "mean" if entry["source"] == "timm" else "flatten"
    (folder / "registry.json").write_text(json.dumps({"contract_version": "1.0", "models": models}))


def cases(shared: Path) -> dict[str, list[str]]:
    """List the commands by name; `OUT` stands for the folder of a side.

    Args:
        shared: The folder of shared photos and weights.
    """
    photos = f"--data.photos.root={shared}/data/cats_and_dogs"
    weights = f"--data.backbone.weights={shared}/weights/mobilenet_v2_imagenet.safetensors"
    real = ["train.py", "--config=configs/cats_and_dogs.yaml", photos, weights, "--trainer.logger=false"]
    demo = ["train.py", "--config=configs/demo.yaml", "--trainer.logger=false"]
    tune = ["train.py", "--config=configs/fine_tuning.yaml", photos, weights, "--trainer.logger=false"]
    tune += ["--data.max_samples=48", "--data.validation_size=40", "--criterion.consecutive=3"]
    evaluate = ["evaluate.py"]
    cats = f"{shared}/data/cats_and_dogs"
    tables = f"{shared}/data/stable_transfer"
    docs = ["--registry=OUT/registry.json", "--catalog=OUT/stimuli.jsonl"]
    quiet = ["--logger=false"]
    mobile = "--models=[mobilenet_v2_imagenet, mobilenet_v2_birds, mobilenet_v2_insects]"
    bees = ["--targets.bees=datamodules.ClassFolders", f"--targets.bees.root={shared}/data/ants_and_bees"]
    bees += ["--registry=OUT/registry.json"]
    flowers = ["--dataset=datamodules.ClassFolders", f"--dataset.root={shared}/data/flowers"]
    flowers += ["--registry=OUT/registry.json", "--source=mobilenet_v2_imagenet", "--split=validation"]
    return {
        "demo": [*demo, "--trainer.default_root_dir=OUT/demo"],
        "demo_again": [*demo, "--trainer.default_root_dir=OUT/demo"],
        "demo_all": [*demo, *FEW, "--model=configs/model/all_methods.yaml", "--trainer.default_root_dir=OUT/demo_all"],
        "demo_config": ["train.py", "--config=OUT/demo/config.yaml", "--trainer.default_root_dir=OUT/demo_config"],
        "demo_other": [*demo, "--data.batch_size=2", "--trainer.default_root_dir=OUT/demo"],
        "cats": [*real, *FEW, "--trainer.default_root_dir=OUT/cats"],
        "cats_batch": [
            *real,
            *FEW,
            "--data.batch_size=8",
            "--data.max_samples=100",
            "--trainer.default_root_dir=OUT/cats_batch",
        ],
        "cats_part": [
            *real,
            *FEW,
            "--data.validation_size=250",
            "--seed_everything=3",
            "--trainer.default_root_dir=OUT/cats_part",
        ],
        "cats_timm": [
            *demo,
            *FEW,
            "--data.backbone.name=timm/resnet10t",
            "--data.backbone.weights=random",
            "--data.backbone.model_args={}",
            "--data.backbone.preprocessing={resize: 64, crop: 64}",
            "--trainer.default_root_dir=OUT/cats_timm",
        ],
        "tune": [*tune, "--trainer.default_root_dir=OUT/tune-0"],
        "tune_1": [*tune, "--data.first_ordering=1", "--trainer.default_root_dir=OUT/tune-1"],
        "pets": [
            "train.py",
            "--config=configs/oxford_pets.yaml",
            "--data.photos.download=false",
            "--data.photos.root=OUT/nowhere",
            "--trainer.logger=false",
            "--trainer.default_root_dir=OUT/pets",
        ],
        "score": [
            *evaluate,
            "sample-efficiency",
            "OUT/demo",
            "--threshold=0.75",
            "--consecutive=5",
            "--output=OUT/score.json",
        ],
        "join": [*evaluate, "sample-efficiency", "OUT/tune-*", "--output=OUT/join.json"],
        "catalog": ["-m", "scripts.write_catalog", cats, "--count=60", "--output=OUT/stimuli.jsonl"],
        "cka": [*evaluate, "cka", mobile, *docs, *quiet, "--output=OUT/cka"],
        "cka_cached": [*evaluate, "cka", mobile, *docs, *quiet, "--output=OUT/cka_cached"],
        "cka_mixed": [
            *evaluate,
            "cka",
            "--models=[resnet18_random, vit_random, mobilenet_v2_birds]",
            *docs,
            *quiet,
            "--output=OUT/cka_mixed",
        ],
        "cka_layers": [
            *evaluate,
            "cka",
            "--models=[mobilenet_v2_imagenet]",
            *docs,
            *quiet,
            "--output=OUT/layers",
            "--layers=[features.3, features.6, features.13, features.18]",
        ],
        "search_red": [*evaluate, "cka-search", "--team=red", "--size=8", *docs, "--output=OUT/red"],
        "search_blue": [*evaluate, "cka-search", "--team=blue", "--size=3", *docs, "--output=OUT/blue"],
        "validate": ["scripts/validate_submission.py", "OUT/red/submission.json", *docs],
        "score_red": [
            *evaluate,
            "cka",
            "--team=red",
            "--submission=OUT/red/submission.json",
            *docs,
            *quiet,
            "--output=OUT/red",
        ],
        "score_blue": [
            *evaluate,
            "cka",
            "--team=blue",
            "--submission=OUT/blue/submission.json",
            *docs,
            *quiet,
            "--output=OUT/blue",
        ],
        "transfer": [*evaluate, "transferability", *bees, *quiet, "--output=OUT/transfer"],
        "transfer_all": [
            *evaluate,
            "transferability",
            *bees,
            *quiet,
            "--output=OUT/transfer_all",
            "--models=[mobilenet_v2_imagenet, mobilenet_v2_birds]",
            "--metrics=[gbc, leep, n_leep, log_me, h_score, h_score_shrunk, nce, trans_rate, "
            "linear_probe, num_classes]",
        ],
        "select": [*evaluate, "target-selection", *flowers, *quiet, "--targets=12", "--output=OUT/select"],
        "select_target": [
            *evaluate,
            "target-selection",
            *flowers,
            *quiet,
            "--targets=6",
            "--gbc_axes=target",
            "--class_share=varying",
            "--output=OUT/select_target",
        ],
        "stability_1": [
            *evaluate,
            "stability",
            f"--table={tables}/source_datasets_table.csv",
            "--preset=scenario1",
            *quiet,
            "--output=OUT/stability_1",
        ],
        "stability_2": [
            *evaluate,
            "stability",
            f"--table={tables}/source_model_architectures_table.csv",
            "--preset=scenario2",
            *quiet,
            "--output=OUT/stability_2",
        ],
        "schemas": ["-m", "scripts.write_schemas", "--help"],
        "wrong_option": [*demo, "--data.batchsize=2"],
        "wrong_value": [*demo, "--data.batch_size=-2"],
        "wrong_model": [*evaluate, "cka", "--models=[mobilenet_v2_imagnet]", *docs, *quiet, "--output=OUT/no"],
        "wrong_metric": [*evaluate, "transferability", *bees, "--metrics=[gbx]", "--output=OUT/no"],
        "wrong_table": [*evaluate, "stability", "--table=OUT/registry.json", *quiet, "--output=OUT/no"],
        "wrong_command": [*evaluate, "kca"],
        "wrong_run": [*evaluate, "sample-efficiency", "OUT/nowhere"],
        "wrong_epochs": [*demo, "--trainer.max_epochs=2", "--trainer.default_root_dir=OUT/no"],
    }


def capture(checkout: str, folder: str, shared: str = "../shared", only: list[str] | None = None) -> None:
    """Run every command in a checkout and keep what it gives.

    Args:
        checkout: The checkout.
        folder: Folder for everything that is written.
        shared: The folder of shared photos and weights.
        only: Names of the commands; all by default. What earlier ones wrote is kept.
    """
    out, material = Path(folder).resolve(), Path(shared).resolve()
    if only is None:
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    write_registry(out, material)
    environment = {
        **os.environ,
        "HEADSTART_CACHE": str(out / "cache"),
        "HACKATHON_DATASET_ROOT": str(material / "data"),
        "OMP_NUM_THREADS": "2",
        "COLUMNS": "120",
        "WANDB_MODE": "disabled",
    }
    for name, command in cases(material).items():
        if only is not None and name not in only:
            continue
        words = [word.replace("OUT", str(out)) for word in command]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *words], cwd=checkout, env=environment, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - start
        record = {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr, "seconds": seconds}
        plain = {
            key: value.replace(str(out), "OUT") if isinstance(value, str) else value for key, value in record.items()
        }
        (out / f"{name}.command.json").write_text(json.dumps(plain, indent=1))
        print(f"{name}: exit code {done.returncode}, {seconds:.1f} s", flush=True)


def compare(before: str, after: str, texts: bool = False) -> None:
    """List every difference between two captures.

    Args:
        before: Folder of the first capture.
        after: Folder of the second.
        texts: Whether what was printed counts, too.
    """
    sides = [Path(before), Path(after)]
    names = sorted({path.relative_to(side).as_posix() for side in sides for path in _outputs(side)})
    differences = 0
    for name in names:
        there = [(side / name).is_file() for side in sides]
        if not all(there):
            differences += 1
            print(f"{name}: only {'before' if there[0] else 'after'}")
            continue
        for line in _differences(*(_read(side / name, side, texts) for side in sides)):
            differences += 1
            print(f"{name}: {line}")
    print(f"{len(names)} files, {differences} differences")
    raise SystemExit(differences > 0)


def _outputs(side: Path) -> Iterator[Path]:
    kinds = {".json", ".jsonl", ".csv", ".npz", ".npy", ".md", ".yaml"}
    for path in side.rglob("*"):
        if path.is_file() and path.suffix in kinds and "cache" not in path.relative_to(side).parts[:1]:
            yield path


def _read(path: Path, side: Path, texts: bool) -> Any:  # noqa: ANN401 - whatever the file holds
    if path.suffix in {".npz", ".npy"}:
        arrays = np.load(path, allow_pickle=False)
        return (
            {name: (arrays[name].dtype.str, arrays[name].tolist()) for name in arrays.files}
            if path.suffix == ".npz"
            else arrays.tolist()
        )
    text = path.read_text().replace(str(side.resolve()), "OUT")
    if path.suffix == ".json":
        content = _lasting(json.loads(text))
        if path.name.endswith(".command.json"):
            return content if texts else {"code": content["code"]}
        return content
    if path.suffix == ".yaml":
        return yaml.safe_load(text)
    if path.suffix == ".jsonl":
        return [_lasting(json.loads(line)) for line in text.splitlines()]
    if path.suffix == ".csv":
        lines = [line.split(",") for line in text.splitlines()]
        passing = [i for i, name in enumerate(lines[0]) if PASSING.fullmatch(name)] if lines else []
        return [[cell for i, cell in enumerate(line) if i not in passing] for line in lines]
    # Seconds stand in cells of their own with two decimals; the scores are compared in the other files.
    return re.sub(r"\| \d+\.\d\d(?= \|)", "| TIME", text).splitlines()


def _lasting(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _lasting(each) for key, each in value.items() if not PASSING.fullmatch(key)}
    return [_lasting(each) for each in value] if isinstance(value, list) else value


def _differences(one: Any, other: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                yield f"{place}/{key}: only {'before' if key in one else 'after'}"
            else:
                yield from _differences(one[key], other[key], f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from _differences(first, second, f"{place}[{i}]")
    elif one != other and not (one != one and other != other):
        yield f"{place}: {str(one)[:150]!r} -> {str(other)[:150]!r}"


if __name__ == "__main__":
    jsonargparse.auto_cli([capture, compare])
