"""The command `headstart`: its list, its mistakes, and where each command leads."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from headstart.__main__ import main
from headstart.cli.commands import COMMAND_BY_NAME, COMMANDS
from headstart.output.version import describe_version


def test_help_fits_on_a_screen_and_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    starts = [lines.index(question) for question in COMMANDS]
    for start, (question, commands) in zip(starts, COMMANDS.items(), strict=True):
        named = [name for name, command in commands.items() if command.summary]
        assert [line.split()[0] for line in lines[start + 1 : start + 1 + len(named)]] == named, question
    main([])
    assert capsys.readouterr().out.splitlines() == lines


def test_every_command_has_a_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in COMMAND_BY_NAME.items():
        if command.extra != "portal" or find_spec("fastapi"):
            with pytest.raises(SystemExit) as caught:
                main([*name.split(), "--help"])
            assert caught.value.code == 0, name
            assert capsys.readouterr().out.startswith("usage: headstart"), name


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["--version"], ["train", "--version"], ["list", "--version"], ["sweep", "--version"]):
        main(args)
        assert capsys.readouterr().out == f"{describe_version()}\n"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "headstart.portal.serve", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(SystemExit):
        main(["portal"])
    assert capsys.readouterr().err.endswith("pip install 'headstart[portal]'\n")


def test_configurations_of_the_suite_are_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def shown(*args: str) -> str:
        with pytest.raises(SystemExit):
            main([*args, "--print_config"])
        return capsys.readouterr().out

    by_name = shown("train", "--config", "demo.yaml")
    assert "headstart.datamodules.DrawnPets" in by_name
    assert shown("train", "--config=configs/demo.yaml") == by_name == shown("demo")
    assert "class_path: headstart.modules.LoRA\n" in shown("demo", "--model.methods.x=lora")
    assert "kernel_ridge" in shown("demo", "--model=configs/model/frozen_methods.yaml")
    # Existing files belong to the user.
    (tmp_path / "demo.yaml").write_text("seed_everything: 7")
    assert "seed_everything: 7" in shown(
        "train", "--config=demo.yaml", "--data=FeatureStream", "--data.photos=DrawnPets"
    )


def test_a_reader_that_has_gone_ends_it_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headstart", "list", "configs"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
