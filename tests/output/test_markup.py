"""Any text is shown as it is in CSV, Markdown and LaTeX."""

import pytest

from headstart.output.markup import escape_cell, escape_latex, escape_markdown, escape_names


@pytest.mark.parametrize(
    ("text", "markdown", "latex", "cell"),
    [
        ("plain", "plain", "plain", "plain"),
        ("a_b", r"a\_b", r"a\_b", "a_b"),
        ("=1", "=1", "=1", "'=1"),
        ("\\", r"\\", r"\textbackslash{}", "\\"),
        ("[x]\n^", r"\[x\] ^", r"{[x] \textasciicircum{}}", "[x]\n^"),
        ("50 % & $", r"50 % \& \$", r"50 \% \& \$", "50 % & $"),
    ],
)
def test_escapes(text: str, markdown: str, latex: str, cell: str) -> None:
    assert (escape_markdown(text), escape_latex(text), escape_cell(text)) == (markdown, latex, cell)


def test_names_and_headers_are_escaped_and_numbers_are_not() -> None:
    rows = [["a_b", "c_d"], ["e_f", "0.5 [0, 1]"]]
    assert escape_names(rows) == [[r"a\_b", r"c\_d"], [r"e\_f", "0.5 [0, 1]"]]


def test_numbers_are_no_formulas() -> None:
    assert escape_cell(-5.2) == -5.2
