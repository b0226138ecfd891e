"""Edits that can change a count, in the files of a user's project."""

from dataclasses import dataclass, field
from typing import Any

from headstart.tests.material.own_project import method

CLASS_MAKER = """\
from headstart.modules import NearestClassMean
def make(by):
    class Made(NearestClassMean):
        def __init__(self, scale=None):
            super().__init__()
        def forward(self, inputs):
            return super().forward(inputs) * by
    return Made
"""
PARTIAL = "from functools import partial\ndef times(x, by):\n    return x * by\nscale = partial(times, by=1.0)\n"
MAKER = "def make(by):\n    def scale(x):\n        return x * by\n    return scale\n"
WRAPPER = (
    "from functools import wraps\ndef by(f):\n    @wraps(f)\n    def g(x):\n        return 1.0 * f(x)\n    return g\n"
)
CLASS_DECORATOR = """\
def by(kind):
    forward = kind.forward
    kind.forward = lambda self, inputs: forward(self, inputs) * 1.0
    return kind
"""
CALLABLE = """\
class Scale:
    def __init__(self, by):
        self.by = by
    def __call__(self, x):
        return x * self.by
"""
PATCH = """\
from headstart.modules import NearestClassMean
forward = NearestClassMean.forward
def f(self, inputs):
    return forward(self, inputs) * 1.0
NearestClassMean.other_forward = f
"""
IMPORT_OF_A_FILE = """\
import importlib.util as u, sys
s = u.spec_from_file_location('x', 'c/b.py')
m = sys.modules['x'] = u.module_from_spec(s)
s.loader.exec_module(m)
"""
RAISES = """\
def f():
    try:
        raise ValueError('1.0')
    except ValueError as error:
        return float(str(error))
"""
ENVIRONMENT = "from os import environ as E"
DATA = "from dataclasses import dataclass\n@dataclass\nclass D:\n    s: float = 1.0\n"
ENUM = "from enum import Enum\nclass E(Enum):\n    A = 1.0\n"
LOSS = "class VoteError:\n    def __init__(self, kind):\n        self.kind = kind\n"


@dataclass
class Case:
    """Files of a project, and an edit: in a file 1.0 becomes 3.0, or a variable gets another value."""

    files: dict[str, str]
    edited: str = "b.py"
    options: dict[str, Any] = field(default_factory=dict)


def mine(edited: str = "b.py", *, options: dict[str, Any] | None = None, **files: Any) -> Case:
    """Return a case with a method of the given parts; files by their names with underscores for dots and slashes."""
    parts = {name: files.pop(name) for name in ("imports", "attribute", "init", "factor") if name in files}
    return Case(
        {"mine.py": method(**parts), **{_path(name): text for name, text in files.items()}}, edited, options or {}
    )


def _path(name: str) -> str:
    return name.replace("__", "/").replace("_py", ".py").replace("_txt", ".txt").replace("init.py", "__init__.py")


CASES = {
    "constant": mine("mine.py", imports="S = 1.0", factor="S"),
    "helper": mine("mine.py", imports="def s():\n    return 1.0\n", factor="s()"),
    "default of an argument": mine("mine.py", imports="def s(x=1.0):\n    return x\n", factor="s()"),
    "class attribute": mine("mine.py", attribute="s = 1.0", factor="self.s"),
    "lambda": mine("mine.py", imports="s = lambda x: x * 1.0", factor="s(1)"),
    "method of a class": mine("mine.py", attribute="s = property(lambda self: 1.0)", factor="self.s"),
    "condition": mine("mine.py", imports="from os import name as S", factor="2 if S == '1.0' else 1"),
    "decorator of the class": mine(imports="from b import by\n@by", b_py=CLASS_DECORATOR),
    "comment": mine("mine.py", imports="# 1.0", factor="2"),
    "text of an argument": mine(
        "mine.py",
        imports="from b import VoteError",
        init="self.loss = VoteError(kind='1.0')",
        factor="float(self.loss.kind)",
        b_py=LOSS,
    ),
    "text of an error": mine(imports="import b", factor="b.f()", b_py=RAISES),
    "operator": mine(imports="import b", factor="b.S(2, 1)", b_py="import operator\nS = [operator.gt, 1.0][0]\n"),
    "pattern": mine(imports="import b", b_py="import re\nS = re.compile('1.0')\n"),
    "default of a dataclass": mine(imports="from b import D", factor="D().s", b_py=DATA),
    "member of an enumeration": mine(imports="from b import E", factor="E.A.value", b_py=ENUM),
    # Imports.
    "imported function": mine(imports="from b import s", factor="s()", b_py="def s():\n    return 1.0\n"),
    "import of an import": mine("c.py", imports="import b", factor="b.S", b_py="from c import S", c_py="S = 1.0\n"),
    "import by a computed name": mine(
        "leaf.py",
        imports="import b",
        factor="b.S",
        b_py="from c import S\n",
        c_py="from importlib import import_module\nS = import_module('le' + 'af').S\n",
        leaf_py="S = 1.0\n",
    ),
    "import when it is made": mine(init="import b; self.s = b.S", factor="self.s", b_py="S = 1.0\n"),
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
    "import of a file": mine("c/b.py", imports=IMPORT_OF_A_FILE, factor="m.S", c__b_py="S = 1.0\n"),
    "module that is not kept": mine(
        imports=IMPORT_OF_A_FILE.replace("sys.modules['x'] = ", "").replace("c/", ""), factor="m.S", b_py="S = 1.0\n"
    ),
    "file that runpy runs": mine(imports="import runpy; B = runpy.run_path('b.py')", factor="B['S']", b_py="S = 1.0\n"),
    "file that only others import": mine("other.py", other_py="S = 1.0\n"),
    "decorator": mine(imports="from b import by\n@by\ndef s(x):\n    return x\n", factor="s(1)", b_py=WRAPPER),
    "base class": mine(imports="from b import Parent as NearestClassMean", b_py=CLASS_MAKER + "Parent = make(1.0)\n"),
    "base class of a base class": mine(
        "c.py",
        imports="from b import Parent as NearestClassMean",
        b_py="from c import make\nclass Parent(make(2)):\n    pass\n",
        c_py=CLASS_MAKER.replace("* by", "* by * 1.0"),
    ),
    # Hyperparameters that name code.
    "partial": mine(options={"scale": "b.scale"}, b_py=PARTIAL),
    "closure": mine(options={"scale": "b.scale"}, b_py="from c import make\nscale = make(1.0)\n", c_py=MAKER),
    "object with __call__": mine(
        options={"scale": "b.scale"}, b_py="from c import Scale\nscale = Scale(1.0)\n", c_py=CALLABLE
    ),
    # The module of the class path.
    "made class": Case({"mine.py": "from b import make\nMine = make(1.0)\n", "b.py": CLASS_MAKER}, "mine.py"),
    "maker of the class": Case(
        {"mine.py": "from b import make\nMine = make(2)\n", "b.py": CLASS_MAKER.replace("* by", "* by * 1.0")}
    ),
    # Monkeypatches.
    "patch in an imported file": mine(imports="import b", b_py=PATCH),
    "patch in a file beside": mine("other.py", other_py=PATCH),
    # What options and declarations name.
    "file that an option names": mine(
        "c.txt",
        options={"scale": "c.txt"},
        init="self.of = scale",
        factor="float(open(self.of).read())",
        c_txt="1.0",
    ),
    "declared file": mine(
        "c.txt", attribute="reads_files = ('c.txt',)", factor="float(open('txt.c'[::-1]).read())", c_txt="1.0"
    ),
    "declared variable": mine(
        "VOTE", imports=ENVIRONMENT, attribute="reads_variables = 'VOTE'", factor="float(E['VOTE'])"
    ),
    # Own code that lies elsewhere: on `sys.path`, as packages that are installed for editing.
    "package elsewhere": mine(
        "elsewhere/dependency/__init__.py",
        imports="import sys; sys.path.append('elsewhere'); import dependency",
        factor="dependency.S",
        elsewhere__dependency__init_py="S = 1.0\n",
    ),
}

READ = "G = {}; exec(open('rule.txt').read(), G)"
RULE = {"rule.txt": "def s(*_):\n    return 1.0\n"}
# Parts of methods that a text makes: none of them is ever stored.
MADE = {
    "function": {"imports": "exec(open('rule.txt').read())", "factor": "s()"},
    "value": {"imports": "S = eval('1.0')", "factor": "S"},
    "function in a mapping": {"imports": READ, "factor": "G['s']()"},
    "closure": {"imports": f"{READ}; s = (lambda f: lambda: f())(G.pop('s'))", "factor": "s()"},
    "partial": {"imports": f"{READ}; import functools; s = functools.partial(G.pop('s'))", "factor": "s()"},
    "property": {"imports": READ, "attribute": "s = property(G.pop('s'))", "factor": "self.s"},
    "attribute": {"imports": READ, "init": "self.s = G['s']", "factor": "self.s()"},
    "class": {"imports": "class F: exec(open('rule.txt').read())", "factor": "F().s()"},
    "file": {"imports": "exec(compile(open('rule.txt').read(), 'mine.py', 'exec'))", "factor": "s()"},
}
