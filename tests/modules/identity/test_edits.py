"""Edits of code, data and environment that can change a count, and others that cannot."""

import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.own_project import describe, method

PARTIAL = "from functools import partial\ndef times(x, by):\n    return x * by\nscale = partial(times, by=1.0)\n"
MAKER = "def make(by):\n    def scale(x):\n        return x * by\n    return scale\n"
WRAPPER = (
    "from functools import wraps\ndef by(f):\n    @wraps(f)\n    def g(x):\n        return 1.0 * f(x)\n    return g\n"
)
BARE = "def by(f):\n    def g(x):\n        return 1.0 * f(x)\n    return g\n"
CALLABLE = """\
class Scale:
    def __init__(self, by):
        self.by = by
    def __call__(self, x):
        return x * self.by
"""
CLASS_MAKER = """\
from headstart.modules import NearestClassMean
def make(by):
    class Made(NearestClassMean):
        factor = by
        def __init__(self, scale=None):
            super().__init__()
        def forward(self, inputs):
            return super().forward(inputs) * by
    return Made
"""
PATCH = """\
from headstart.modules import NearestClassMean
forward = NearestClassMean.forward
def f(self, inputs):
    return forward(self, inputs) * 1.0
NearestClassMean.other_forward = f
"""
PATCH_BY_NAME = (
    "from headstart.modules import NearestClassMean\ndef f(self, x):\n    return x * 1.0\n{}\nn.other_forward = f\n"
)
IMPORT_OF_A_FILE = """\
import importlib.util as u
s = u.spec_from_file_location('x', 'c/b.py')
m = u.module_from_spec(s)
s.loader.exec_module(m)
"""
LAZY = """\
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from parts.b import S as S
def __getattr__(name):
    import parts.b
    return getattr(parts.b, name)
"""


READ = "float(open('txt.c'[::-1]).read())"
# Values that are neither numbers nor lists.
VALUES = [
    ("from types import SimpleNamespace", "SimpleNamespace(s={})"),
    ("from types import MappingProxyType", "MappingProxyType(dict(s={}))"),
    ("from collections import deque", "deque([{}])"),
    ("from decimal import Decimal", "Decimal({})"),
    ("from functools import partialmethod", "partialmethod(print, {})"),
    ("", "bytearray([int({})])"),
    ("", "str({}) + '/a'"),
    ("import numpy as np", "np.random.default_rng(int({}))"),
    ("import numpy as np", "np.ma.masked_equal([1.0, 2.0, 3.0], {})"),
    ("import numpy as np", "np.array([{}, None], dtype=object)"),
    ("import torch", "torch.Generator().manual_seed(int({}))"),
    ("import torch", "torch.tensor([0, {}]).to_sparse()"),
]


@dataclass
class Case:
    """Files of a project, and an edit: in a file 1.0 becomes 3.0, or environment variables get other values."""

    files: dict[str, str]
    edited: str = "b.py"
    options: dict[str, Any] = field(default_factory=dict)
    variable: str = ""


def mine(edited: str = "b.py", *, options: dict[str, Any] | None = None, **files: Any) -> Case:
    """Return a case with a method of the given parts; files by their names with underscores for dots and slashes."""
    parts = {name: files.pop(name) for name in ("imports", "attribute", "init", "factor") if name in files}
    return Case(
        {"mine.py": method(**parts), **{_path(name): text for name, text in files.items()}}, edited, options or {}
    )


def _path(name: str) -> str:
    return name.replace("__", "/").replace("_py", ".py").replace("_txt", ".txt").replace("init.py", "__init__.py")


CASES = {
    # Code of the method's own file.
    "constant": mine("mine.py", imports="S = 1.0", factor="S"),
    "helper": mine("mine.py", imports="def s():\n    return 1.0\n", factor="s()"),
    "default of an argument": mine("mine.py", imports="def s(x=1.0):\n    return x\n", factor="s()"),
    "class attribute": mine("mine.py", attribute="s = 1.0", factor="self.s"),
    # Imports.
    "imported function": mine(imports="from b import s", factor="s()", b_py="def s():\n    return 1.0\n"),
    "import of an import": mine("c.py", imports="import b", factor="b.S", b_py="from c import S", c_py="S = 1.0\n"),
    "import with a star": mine(imports="from b import *", factor="S", b_py="S = 1.0\n"),
    "import in a function": mine(factor="__import__('b').S", b_py="S = 1.0\n"),
    "relative import": mine(
        "parts/b.py",
        imports="from parts.a import S",
        factor="S",
        parts__init_py="",
        parts__a_py="from .b import S",
        parts__b_py="S = 1.0\n",
    ),
    "file of a package": mine(
        "parts/__init__.py", imports="import parts.b", factor="parts.S", parts__init_py="S = 1.0\n", parts__b_py=""
    ),
    "namespace package": mine("parts/b.py", imports="import parts.b", factor="parts.b.S", parts__b_py="S = 1.0\n"),
    "lazy package": mine(
        "parts/b.py",
        init="import parts; self.s = parts.S",
        factor="self.s",
        parts__init_py=LAZY,
        parts__b_py="S = 1.0\n",
    ),
    "decorator": mine(imports="from b import by\n@by\ndef s(x):\n    return x\n", factor="s(1)", b_py=WRAPPER),
    "parent in another file": mine(
        imports="from b import Parent as NearestClassMean", b_py=CLASS_MAKER + "Parent = make(1.0)\n"
    ),
    # Imports by name.
    "import by a text": mine(
        imports="from importlib import import_module", factor="import_module('b').S", b_py="S = 1.0\n"
    ),
    "import by a value": mine(
        "parts/b.py",
        imports="import importlib",
        factor="importlib.import_module('parts.' + 'ab'[1]).S",
        parts__init_py="",
        parts__b_py="S = 1.0\n",
    ),
    "import of a file": mine(
        "c/b.py",
        imports=IMPORT_OF_A_FILE,
        factor="m.S",
        c__b_py="S = 1.0\n",
    ),
    "import of an executed file": mine(
        "d.py",
        imports=IMPORT_OF_A_FILE,
        factor="m.s()",
        c__b_py="import d\ndef s():\n    return d.S\n",
        d_py="S = 1.0\n",
    ),
    "executed file": mine("c.txt", factor="eval(open('c.txt').read())", c_txt="1.0"),
    # Hyperparameters that name code.
    "partial": mine(options={"scale": "b.scale"}, b_py=PARTIAL),
    "closure": mine(options={"scale": "b.scale"}, b_py="from c import make\nscale = make(1.0)\n", c_py=MAKER),
    "closure's other file": mine(
        "c.py",
        options={"scale": "b.scale"},
        b_py="from c import make\nscale = make(2)\n",
        c_py=MAKER.replace("x * by", "x * by * 1.0"),
    ),
    "bare decorator": mine(
        "c.py", options={"scale": "b.scale"}, b_py="from c import by\n@by\ndef scale(x):\n    return x\n", c_py=BARE
    ),
    "object with __call__": mine(
        options={"scale": "b.scale"}, b_py="from c import Scale\nscale = Scale(1.0)\n", c_py=CALLABLE
    ),
    "class of that object": mine(
        "c.py",
        options={"scale": "b.scale"},
        b_py="from c import Scale\nscale = Scale(2)\n",
        c_py=CALLABLE.replace("x * self.by", "x * self.by * 1.0"),
    ),
    "module alone": mine(
        options={"scale": "b"},
        imports="import importlib",
        init="self.of = scale",
        factor="importlib.import_module(self.of).S",
        b_py="S = 1.0\n",
    ),
    "colon": mine(
        options={"scale": "b:S"},
        imports="import pkgutil",
        init="self.of = scale",
        factor="pkgutil.resolve_name(self.of)",
        b_py="S = 1.0\n",
    ),
    "key": mine(options={"scale": {"b.S": 2}}, init="self.of = scale", b_py="S = 1.0\n"),
    # What is printed may be done as well.
    "call in a message": mine(
        imports="import b", factor="b.f()", b_py="S = []\ndef f():\n    print(f'{S.append(1.0)}')\n    return S[-1]\n"
    ),
    # The module of the class path.
    "made class": Case({"mine.py": "from b import make\nMine = make(1.0)\n", "b.py": CLASS_MAKER}, "mine.py"),
    "maker of the class": Case(
        {"mine.py": "from b import make\nMine = make(2)\n", "b.py": CLASS_MAKER.replace("* by", "* by * 1.0")}
    ),
    # Monkeypatches.
    "patch in an imported file": mine(imports="import b", b_py=PATCH),
    "patch in a file beside": mine("other.py", other_py=PATCH),
    "patch by another name": mine("other.py", other_py=PATCH_BY_NAME.format("n = NearestClassMean")),
    "patch in a loop": mine("other.py", other_py=PATCH_BY_NAME.format("for n in [NearestClassMean]:\n    pass")),
    "patch by an argument": mine(
        "other.py",
        other_py=PATCH_BY_NAME.format("def patch(n):\n    n.other_forward = f\npatch(NearestClassMean)\nn = f"),
    ),
    # Data.
    "file read while it adapts": mine("c.txt", factor="float(open('c.txt').read())", c_txt="1.0"),
    "file beside the code": mine(
        "c.txt",
        imports="from pathlib import Path",
        factor="float(Path(__file__).with_name('c.txt').read_text())",
        c_txt="1.0",
    ),
    "file in a folder": mine(
        "c/d.txt",
        imports="from pathlib import Path\nHERE = Path(__file__).parent",
        factor="float((HERE / 'c' / 'd.txt').read_text())",
        c__d_txt="1.0",
    ),
    "file read when imported": mine("c.txt", imports="S = float(open('txt.c'[::-1]).read())", factor="S", c_txt="1.0"),
    "file read when built": mine(
        "c.txt", init="self.s = float(open('txt.c'[::-1]).read())", factor="self.s", c_txt="1.0"
    ),
    "file that an option names": mine(
        "c.txt",
        options={"scale": "c.txt"},
        init="self.path = scale",
        factor="float(open(self.path).read())",
        c_txt="1.0",
    ),
    "declared file": mine(
        "c.txt", attribute="reads_files = ('txt.c'[::-1],)", factor="float(open('txt.c'[::-1]).read())", c_txt="1.0"
    ),
    "array": mine("c.txt", imports="import numpy as np\nS = np.loadtxt('txt.c'[::-1])", factor="S", c_txt="1.0"),
    "file in the folder of another module": mine(
        "parts/c.txt",
        imports="from parts import HERE",
        factor="float((HERE / 'c.txt').read_text())",
        parts__init_py="from pathlib import Path\nHERE = Path(__file__).parent\n",
        parts__c_txt="1.0",
    ),
    "file with a computed name in a path": mine(
        "c_1.txt",
        imports="from pathlib import Path\nK = 1\nFILE = Path(f'c_{K}.txt')",
        factor="float(FILE.read_text())",
        c_1_txt="1.0",
    ),
    **{
        f"value, {value}": mine("c.txt", imports=f"{imports}\nS = {value.format(READ)}", factor="2", c_txt="1.0")
        for imports, value in VALUES
    },
    # The environment.
    "variable of a class attribute": Case(
        {"mine.py": method(imports="import os", attribute="s = float(os.environ['S'])", factor="self.s")}, variable="S"
    ),
    "variable read while it adapts": Case(
        {"mine.py": method(imports="from os import getenv", factor="float(getenv('S'))")}, variable="S"
    ),
    "variable with a default": Case(
        {"mine.py": method(imports="import os", factor="float(os.environ.get('S', 2))")}, variable="S"
    ),
    "variable with a name in a constant": Case(
        {"mine.py": method(imports="import os\nNAME = 'S'", factor="float(os.environ[NAME])")}, variable="S"
    ),
    "variable in a text": Case(
        {"mine.py": method(imports="import os", factor="float(os.path.expandvars('$S'))")}, variable="S"
    ),
    "variable of another file": Case(
        {"mine.py": method(imports="import b", factor="b.S"), "b.py": "import os\nS = os.environ['RS'[1:]]\n"},
        variable="S",
    ),
    "declared variable": Case(
        {
            "mine.py": method(
                imports="import os", attribute="reads_variables = 'S'", factor="float(os.environ['RS'[1:]])"
            )
        },
        variable="S",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_edit_that_can_matter_changes_the_provenance(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    if case.variable:
        monkeypatch.setenv(case.variable, "1.0")
    before = describe(tmp_path, case.files, **case.options)
    assert before == describe(tmp_path, {}, **case.options)
    if case.variable:
        monkeypatch.setenv(case.variable, "3.0")
        edited = {}
    else:
        assert case.files[case.edited].count("1.0") == 1
        edited = {case.edited: case.files[case.edited].replace("1.0", "3.0")}
    assert before != describe(tmp_path, edited, **case.options)


def test_the_value_of_a_variable_is_not_in_the_provenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S", "a secret")
    described = describe(tmp_path, {"mine.py": method(imports="import os", factor="len(os.environ['S'])")})
    assert described["variables"] == {"S": hashlib.sha256(b"a secret").hexdigest()}
    assert "a secret" not in json.dumps(described)


OWN = method(imports="import b\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import c", factor="b.scale(1)")
B = 'def scale(x):\n    """Scale."""\n    if x > 9:\n        raise ValueError("too large")\n    return x * 2\n'
FILES = {"mine.py": OWN, "b.py": B, "c.py": "S = 1\n", "d.py": "S = 1\n", "other.py": "S = 1\n", "e.txt": "1"}
HARMLESS = {
    "comment": {"b.py": B.replace("return", "# Twice.\n    return")},
    "docstring": {"b.py": B.replace('"Scale.', '"Multiply by two.')},
    "removed docstring": {"b.py": B.replace('    """Scale."""\n', "")},
    "layout": {"b.py": B.replace("x * 2", "(\n        x\n        *2)").replace("\n    if", "\n\n    if")},
    "message": {"b.py": B.replace("too large", "x is too large; give 9 or less")},
    "message with a value": {"b.py": B.replace('"too large"', 'f"{x} is too large"')},
    "file for type checkers": {"c.py": "S = 2\n"},
    "other file": {"d.py": "S = 2\n"},
    "other imported file": {"other.py": "S = 2\n"},
    "other data": {"e.txt": "2"},
    "new file": {"f.py": "S = 1\n"},
    "same content": {"mine.py": OWN},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_an_edit_that_cannot_matter_does_not(name: str, tmp_path: Path) -> None:
    assert describe(tmp_path, FILES) == describe(tmp_path, HARMLESS[name])


def test_place_and_other_variables_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = "from pathlib import Path\nHERE = str(Path(__file__).parent)\nimport b\n"
    files = {**FILES, "mine.py": method(imports=here, factor="b.scale(1)")}
    before = describe(tmp_path / "one", files)
    monkeypatch.setenv("AN_OTHER_VARIABLE", "1")
    assert describe(tmp_path / "two", files) == before
    assert not [name for name in sys.modules if name in ("mine", "b")]
