"""Change lines of the suite, one at a time, and report which changes no test notices."""

import ast
import io
import os
import random
import re
import shlex
import signal
import subprocess
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from headstart.benchmarks.frame import ROOT

TESTS = ".venv/bin/pytest -x -q -n 2"
ROOMS = ("metrics", "modules", "callbacks", "contract", "store", "engines")
# What takes the place of an operator or a truth value.
REPLACED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
REPLACED |= {"+": "-", "-": "+", "*": "/", "/": "*", "True": "False", "False": "True"}
# A call, or a change of a value, in a line of its own.
STATEMENT = re.compile(r"(\s+)([\w.]+\(.*\)|[\w.]+(\[.*\])? [-+*/|&]= .*)")
# Lines with messages or annotations, and arguments whose change no test could notice.
UNCHANGED = re.compile(r'\s*(raise|assert|def|import|from)\b|.*(\bf"|\b(strict|timeout)=)')


class Mutation(NamedTuple):
    """A change of one line, the first of which has the number 1."""

    path: Path
    line: int
    before: str
    after: str


def mutations(path: Path) -> Iterator[Mutation]:
    """Yield changes of a file's lines: of a comparison, a sign, a constant, or a line that is missing.

    Args:
        path: The file.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (row, start), stop = token.start, token.end[1]
        new = f"{token.string} + 1" if token.type == tokenize.NUMBER else REPLACED.get(token.string)
        if new:
            line = lines[row - 1]
            after = f"{line[:start]}{new}{line[stop:]}"
        elif token.type == tokenize.NEWLINE and (statement := STATEMENT.fullmatch(lines[row - 1])):
            line, after = lines[row - 1], f"{statement[1]}pass"
        else:
            continue

        # Some are no Python, such as that of a star before arguments.
        with suppress(SyntaxError):
            ast.parse("\n".join([*lines[: row - 1], after, *lines[row:]]))
            if not UNCHANGED.match(line):
                yield Mutation(path, row, line, after)


@contextmanager
def mutated(mutation: Mutation) -> Iterator[None]:
    """Change the file within, and restore it however the block ends."""
    text, times = mutation.path.read_bytes(), mutation.path.stat()
    lines = text.decode().splitlines(keepends=True)
    lines[mutation.line - 1] = f"{mutation.after}\n"
    try:
        mutation.path.write_text("".join(lines), encoding="utf-8")
        yield
    finally:
        mutation.path.write_bytes(text)
        # Byte code stays valid by the times of its file.
        os.utime(mutation.path, ns=(times.st_atime_ns, times.st_mtime_ns))


def main(count: int = 20, seed: int = 0, rooms: Sequence[str] = ROOMS, tests: str = TESTS) -> None:
    """Change randomly chosen lines, run the tests for each change, and print a table of what they notice.

    Args:
        count: Number of lines.
        seed: Seed of the choice.
        rooms: Folders whose lines are changed.
        tests: Command of the tests, which fails if they notice something.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    of_lines: dict[tuple[Path, int], list[Mutation]] = {}
    for path in sorted(path for room in rooms for path in ROOT.glob(f"{room}/**/*.py")):
        for mutation in mutations(path):
            of_lines.setdefault(mutation[:2], []).append(mutation)

    print("| place | before | after | noticed by |\n| --- | --- | --- | --- |", flush=True)
    generator, missed = random.Random(seed), 0
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for place in generator.sample(sorted(of_lines), min(count, len(of_lines))):
        path, line, before, after = mutation = generator.choice(of_lines[place])
        with mutated(mutation):
            done = subprocess.run(
                shlex.split(tests), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        noticed = (failed[1] if failed else "the command") if done.returncode else "nothing"
        missed += not done.returncode
        code = " | ".join(f"`{text.strip()}`".replace("|", "\\|") for text in (before, after))
        print(f"| {path.relative_to(ROOT)}:{line} | {code} | {noticed} |", flush=True)
    print(f"\n{missed} changes were not noticed.")
