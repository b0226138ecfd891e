"""Any text is shown as it is in CSV, Markdown and LaTeX."""

import pytest

from headstart.output.markup import escape_cell, escape_latex, escape_markdown


@pytest.mark.parametrize(
    ("text", "markdown", "latex", "cell"),
    [
        ("a_b", r"a\_b", r"a\_b", "a_b"),
        ("=1", "=1", "=1", "'=1"),
        ("\\", r"\\", r"\textbackslash{}", "\\"),
        ("[x]\n^", r"\[x\] ^", r"{[x] \textasciicircum{}}", "[x]\n^"),
        ("50 % & $", r"50 % \& \$", r"50 \% \& \$", "50 % & $"),
    ],
)
def test_escapes(text: str, markdown: str, latex: str, cell: str) -> None:
    assert (escape_markdown(text), escape_latex(text), escape_cell(text)) == (markdown, latex, cell)
