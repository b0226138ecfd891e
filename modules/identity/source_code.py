"""The source code of one module: its digest, and what it refers to."""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

DOTTED = re.compile(r"\.*[^\W\d]\w*(\.[^\W\d]\w*)*\.?")
# Calls that import or run code by a name or path that is no part of the syntax.
DYNAMIC = ("import_module", "__import__", "resolve_name", "spec_from_file_location", "run_path", "run_module")
READS_VARIABLE = re.compile(r"(\w+\.)*(environ(\.(get|pop|setdefault))?|environb(\.get)?|getenvb?)")
READERS = {"environ", "environb", "getenv", "getenvb", "expandvars"}
NAME_OF_VARIABLE = re.compile(r"[^\W\d]\w*")
# Calls that change attributes of their first argument.
CHANGES = re.compile(r"(\w+\.)*(setattr|delattr|patch\.object)")
FORMATTING = {"len", "str", "repr", "type", "join", "format"}
# Calls whose texts are for people.
SAYS = re.compile(r"say|warn|print|\w*(Error|Warning)")


@dataclass(frozen=True)
class SourceCode:
    """The content of a module's code.

    Attributes:
        digest: SHA-256 of the code without comments, docstrings, layout and the texts of errors and messages.
        imports: Dotted paths that it imports or refers to, anywhere in the file; each begins with a module.
        exports: Paths of names that are imported for type checkers alone, by the name; lazy packages export these.
        texts: Texts in the code.
        variables: Environment variables that it reads by a literal name.
        possible_variables: Names in its texts, where it reads environment variables by names that are no literal texts.
        is_dynamic: Whether it imports modules by names that are no literal texts.
        changes_others: Whether it assigns to attributes of its imports.
    """

    digest: str
    imports: frozenset[str] = frozenset()
    exports: tuple[tuple[str, str], ...] = ()
    texts: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    possible_variables: frozenset[str] = frozenset()
    is_dynamic: bool = False
    changes_others: bool = False


@cache
def parse(source: bytes, package: str, is_own: bool = True) -> SourceCode:
    """Parse the source code of a module.

    Args:
        source: The code; of code that this Python cannot parse, and of compiled code, the bytes count.
        package: Name of the package with which relative imports begin.
        is_own: Whether the code is the user's own; of other code only digest, imports and exports are returned.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return SourceCode(hashlib.sha256(source).hexdigest())
    every = list(ast.walk(tree))
    _remove_docstrings(every)
    types = {id(node) for block in every if _is_for_types(block) for node in ast.walk(block)}
    nodes = [node for node in every if id(node) not in types]
    # Local names, and the paths that they stand for.
    importing = [node for node in every if isinstance(node, ast.Import | ast.ImportFrom)]
    local = dict(pair for node in importing if id(node) not in types for pair in _imported(node, package))
    exports = tuple(pair for node in importing if id(node) in types for pair in _imported(node, package))
    imports = {*local.values(), *_attribute_paths(nodes, local)}
    if not is_own:
        return SourceCode(_digest(tree, nodes, is_own), frozenset(imports), exports)

    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    is_dynamic = any(_imports_by_value(node) for node in nodes)
    named = {absolute(text, package) for text in texts if DOTTED.fullmatch(text)} if is_dynamic else set()
    named |= {absolute(name, package) for node in nodes for name in _imported_by_name(node)}
    variables = [name for node in nodes for name in _variables(node)]
    readers = sum(bool(READERS & set(_name_of(node))) for node in nodes)
    names = {name for text in texts for name in _names_of_variables(text)} if readers > len(variables) else set()
    aliases = {**local, **_aliases(nodes, local)}
    return SourceCode(
        imports=frozenset({*imports, *named}),
        exports=exports,
        texts=frozenset({*texts, *_joined(nodes)}),
        variables=frozenset(variables),
        possible_variables=frozenset(names),
        is_dynamic=is_dynamic,
        changes_others=any(_changes_others(node, aliases) for node in nodes),
        digest=_digest(tree, nodes, is_own),
    )


def absolute(name: str, package: str) -> str:
    """Return the absolute path of an import.

    Args:
        name: The path; dots before it make it relative.
        package: The package with which it begins then.
    """
    level = len(name) - len(name.lstrip("."))
    base = package.rsplit(".", level - 1)[0] if level > 1 else package
    return f"{base}.{name[level:]}".strip(".") if level else name.strip(".")


def _remove_docstrings(nodes: Iterable[ast.AST]) -> None:
    for node in nodes:
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            body[:1] = [] if len(body) > 1 else [ast.Pass()]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in _name_of(node.test)


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Return local names and the paths that they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], alias.name
    elif isinstance(node, ast.ImportFrom):
        base = absolute("." * node.level + (node.module or ""), package)
        for alias in node.names:
            yield alias.asname or alias.name, base if alias.name == "*" else f"{base}.{alias.name}"


def _attribute_paths(nodes: Iterable[ast.AST], local: dict[str, str]) -> Iterator[str]:
    """Return paths such as `package.module.function` of attributes of imported modules."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and (chain := _chain(node)) and chain[0] in local:
            root, *rest = chain
            # `import a.b` binds `a`.
            path = root if local[root].startswith(f"{root}.") else local[root]
            yield ".".join((path, *rest))


def _chain(node: ast.AST) -> list[str]:
    """Return the names of `a.b.c`; none of other expressions."""
    if isinstance(node, ast.Name):
        return [node.id]
    before = _chain(node.value) if isinstance(node, ast.Attribute) else []
    return [*before, node.attr] if before and isinstance(node, ast.Attribute) else []


def _name_of(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    return (node.attr,) if isinstance(node, ast.Attribute) else ()


def _imports_by_value(node: ast.AST) -> bool:
    """Whether code imports by a name that is no literal text, or looks at the imported modules."""
    if isinstance(node, ast.Call) and node.args and set(_name_of(node.func)) & set(DYNAMIC):
        return not isinstance(node.args[0], ast.Constant)
    return isinstance(node, ast.Attribute) and _chain(node) == ["sys", "modules"]


def _imported_by_name(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and set(_name_of(node.func)) & set(DYNAMIC):
        for argument in node.args:
            if (
                isinstance(argument, ast.Constant)
                and isinstance(argument.value, str)
                and DOTTED.fullmatch(argument.value)
            ):
                yield argument.value


def _joined(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Return the texts of `folder / "a" / "b"` and `join(folder, "a", "b")`, joined as the path `a/b`."""
    for node in nodes:
        parts: Sequence[ast.expr] = ()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts = _operands(node)
        elif isinstance(node, ast.Call):
            parts = node.args
        texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if len(texts) > 1:
            yield "/".join(texts)


def _operands(node: ast.expr) -> list[ast.expr]:
    is_joined = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return [*_operands(node.left), node.right] if is_joined and isinstance(node, ast.BinOp) else [node]


def _variables(node: ast.AST) -> Iterator[str]:
    """Return the environment variable that an expression reads or looks for by a literal name."""
    if isinstance(node, ast.Call) and node.args:
        reader, key = node.func, node.args[0]
    elif isinstance(node, ast.Subscript):
        reader, key = node.value, node.slice
    elif isinstance(node, ast.Compare):
        reader, key = node.comparators[0], node.left
    else:
        return
    if isinstance(key, ast.Constant) and READS_VARIABLE.fullmatch(".".join(_chain(reader))):
        yield key.value.decode() if isinstance(key.value, bytes) else str(key.value)


def _names_of_variables(text: str) -> list[str]:
    """Return the names of environment variables that a text may be or, with `$`, contain."""
    return NAME_OF_VARIABLE.findall(text) if "$" in text or NAME_OF_VARIABLE.fullmatch(text) else []


def _aliases(nodes: Iterable[ast.AST], local: dict[str, str]) -> dict[str, str]:
    """Return other names of what is imported: those assigned to it, and those of loops over it."""
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.For):
            targets, value = [node.target], node.iter
        else:
            continue
        values = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else [value]
        chains = [chain for each in values if (chain := _chain(each)) and chain[0] in local]
        aliases |= {target.id: local[chains[0][0]] for target in targets if chains and isinstance(target, ast.Name)}
    return aliases


def _changes_others(node: ast.AST, local: dict[str, str]) -> bool:
    """Whether a statement changes an attribute of what is imported, such as `torch.relu = other`."""
    changed: list[ast.AST] = []
    if isinstance(node, ast.Call) and CHANGES.fullmatch(".".join(_chain(node.func))):
        changed = list(node.args[:1])
    elif isinstance(node, ast.Assign | ast.Delete | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
        for part in (each for target in targets for each in ast.walk(target)):
            if isinstance(part, ast.Attribute):
                changed.append(part)
            elif isinstance(part, ast.Call) and _name_of(part.func) == ("vars",):
                changed += part.args
    roots = {local.get(chain[0]) for each in changed if (chain := _chain(each))}
    # Search paths and variables of the environment are often set, and count where they are used.
    return bool(roots - {None, "os", "sys"})


def _digest(tree: ast.Module, nodes: Iterable[ast.AST], is_own: bool) -> str:
    for node in nodes:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            _remove_texts(node.exc, is_own)
        elif isinstance(node, ast.Assert):
            node.msg = None
        elif isinstance(node, ast.Call) and SAYS.fullmatch("".join(_name_of(node.func))):
            _remove_texts(node, is_own)
    return hashlib.sha256(ast.unparse(tree).encode(errors="surrogatepass")).hexdigest()


def _remove_texts(said: ast.AST, is_own: bool) -> None:
    """Remove what is said from a call; a message changes no count, but calls within one of the user's may.

    Args:
        said: The call, or a part of it.
        is_own: Whether the code is the user's own.
    """
    for name, value in ast.iter_fields(said):
        if isinstance(value, list):
            setattr(said, name, [_without_text(each, is_own) for each in value])
        else:
            setattr(said, name, _without_text(value, is_own))


def _without_text(part: Any, is_own: bool) -> Any:  # noqa: ANN401 - a part of the syntax
    acts = is_own and isinstance(part, ast.AST) and any(map(_acts, ast.walk(part)))
    if isinstance(part, ast.Constant | ast.JoinedStr) and not acts:
        is_text = isinstance(part, ast.JoinedStr) or isinstance(part.value, str)
        return ast.Constant("") if is_text else part
    if isinstance(part, ast.JoinedStr):
        part.values = [each for each in part.values if isinstance(each, ast.FormattedValue)]
    elif isinstance(part, ast.AST) and not (is_own and _acts(part)):
        _remove_texts(part, is_own)
    return part


def _acts(node: ast.AST) -> bool:
    """Whether an expression may change something; what formats texts does not."""
    is_formatting = isinstance(node, ast.Call) and set(_name_of(node.func)) & FORMATTING
    return isinstance(node, ast.Call | ast.NamedExpr | ast.Await) and not is_formatting
