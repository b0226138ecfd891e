"""Change lines of the suite, one at a time, and report which changes no test notices."""

import ast
import os
import random
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headstart.benchmarks.frame import ROOT

TESTS = ".venv/bin/pytest -x -q -n 2"
ROOMS = ("metrics", "modules", "callbacks", "contract", "store", "engines")
# Operators by the class of their node, and what takes their place.
OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}


class Mutation(NamedTuple):
    """A change of one line, the first of which has the number 1."""

    path: Path
    line: int
    before: str
    after: str


def mutations(path: Path) -> Iterator[Mutation]:
    """Yield changes of a file's lines: of a comparison, a sign, a constant, or a line that is missing.

    Docstrings, annotations and what is in a message are left alone. So are the arguments `strict` and `timeout`, whose
    change no test could notice.

    Args:
        path: The file.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()

    def change(first: ast.AST, last: ast.AST, pattern: str, new: str) -> Iterator[Mutation]:
        """Yield the change of what matches from the end of one node to the beginning of another one."""
        line, start, stop = first.end_lineno, first.end_col_offset, last.col_offset  # type: ignore[attr-defined]
        if line == last.lineno and re.fullmatch(rf"\s*{re.escape(pattern)}\s*", lines[line - 1][start:stop]):  # type: ignore[attr-defined]
            yield Mutation(path, line, lines[line - 1], f"{lines[line - 1][:start]} {new} {lines[line - 1][stop:]}")

    def visit(node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            return
        if isinstance(node, ast.keyword) and node.arg in ("strict", "timeout"):
            return
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            yield from change(node.left, node.comparators[0], *OPERATORS[type(node.ops[0])])
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            yield from change(node.left, node.right, *OPERATORS[type(node.op)])

        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            line, value = lines[node.lineno - 1], node.value
            new = str(not value if isinstance(value, bool) else value + 1)
            yield Mutation(path, node.lineno, line, line[: node.col_offset] + new + line[node.end_col_offset :])

        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Expr | ast.AugAssign) and node.lineno == node.end_lineno and not is_docstring:
            line = lines[node.lineno - 1]
            yield Mutation(path, node.lineno, line, f"{line[: node.col_offset]}pass{line[node.end_col_offset :]}")

        for name, field in ast.iter_fields(node):
            for child in field if isinstance(field, list) else [field]:
                if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                    yield from visit(child)

    # Columns count bytes, so lines with other letters would be cut at the wrong places.
    yield from (mutation for mutation in visit(ast.parse(text)) if mutation.before.isascii())


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
