"""Names and descriptions of protocols and methods by the values in which they differ."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headstart.output.errors import UserError

# Shown characters of a digest, and values that a message lists.
SHOWN, LISTED = 8, 6
DIGEST = 64
# Keys whose values follow from others.
FOLLOWING = ("start", "all_correct", "largest_class")


def flatten(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of nested mappings by their paths, with dots."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        inner = flatten(value) if isinstance(value, Mapping) and value else {}
        flat |= {f"{key}.{path}": leaf for path, leaf in inner.items()} or {key: value}
    return flat


def select_where(protocols: Mapping[str, dict[str, Any]], where: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Select the protocols that have some values.

    Args:
        protocols: Flat protocols, as `flatten` returns them, by name.
        where: The values, by key; digests may be shortened.

    Raises:
        UserError: None of the protocols has such a key.
    """
    values, keys = flatten(where), {key for protocol in protocols.values() for key in protocol}
    unknown = sorted(set(values) - keys)
    if protocols and unknown:
        raise UserError(f"where: {', '.join(unknown)} is none of {', '.join(sorted(keys))}")
    return {
        name: protocol
        for name, protocol in protocols.items()
        if all(_matches(str(protocol.get(key)), str(value)) for key, value in values.items())
    }


def _matches(value: str, query: str) -> bool:
    return value == query or (len(value) == DIGEST and value.startswith(query))


def describe_differences(documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the listed values of each key that differs, readable keys first."""
    keys = dict.fromkeys(key for document in documents for key in document)
    differing: dict[str, str] = {}
    for key in keys:
        values = list(dict.fromkeys(_quote(document.get(key)) for document in documents))
        if len(values) > 1:
            differing[key] = ", ".join([*values[:LISTED], *["…"] * (len(values) > LISTED)])
    return dict(
        sorted(differing.items(), key=lambda item: "." in item[0] or "sha256" in item[0] or item[0] in FOLLOWING)
    )


def _quote(value: object) -> str:
    """Return a value as `show` does, a text with commas in quotation marks."""
    shown = show(value)
    return repr(shown) if isinstance(value, str) and "," in shown else shown


def show(value: object) -> str:
    """Return a value as text, a digest shortened."""
    text = str(value)
    return text[:SHOWN] if len(text) == DIGEST else text


def distinguishing_keys(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return keys by whose values all documents differ, keys that all documents have first."""
    differing = describe_differences(documents)
    keys: list[str] = []
    for key in sorted(differing, key=lambda key: sum(key not in document for document in documents)):
        if len({tuple(str(document.get(key)) for key in keys) for document in documents}) < len(documents):
            keys.append(key)
    return keys


def distinguish_methods(name: str, documents: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return names of methods that share one name, with the values in which they differ in brackets.

    Args:
        name: The shared name.
        documents: Documents of the methods, by digest.

    Returns:
        A name for each digest.
    """
    flat = {digest: flatten(document) for digest, document in documents.items()}
    keys = distinguishing_keys(list(flat.values()))
    values = {
        digest: ", ".join(f"{shorten(key)} {show(document[key])}" for key in keys if key in document)
        for digest, document in flat.items()
    }
    return {digest: f"{name} ({value or digest[:SHOWN]})" for digest, value in values.items()}


def shorten(key: str) -> str:
    """Return the path of a hyperparameter without the parts that say nothing, such as `optimizer.lr`."""
    return key.removeprefix("hyperparameters.").replace("init_args.", "").removesuffix(".class_path")


def find_method(methods: Iterable[str], method_keys: Mapping[str, Mapping[str, Any]], query: str, option: str) -> str:
    """Return a method by its name, or by its class if it is the only one of it.

    Args:
        methods: Names of the methods.
        method_keys: Keys by name.
        query: The name, the class's name or its path.
        option: Name of the option, for the message.

    Raises:
        UserError: There is none, or several.
    """
    names = list(methods)
    if query in names:
        return query
    kind = query.rpartition(".")[2]
    matches = [name for name in names if str(method_keys[name].get("class", "")).rpartition(".")[2] == kind]
    # The names of variants have their values after the shared name.
    matches = matches or [name for name in names if name.startswith(f"{query} (")]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(map(repr, matches or names))
    kind = f"{len(matches)} methods; give one of" if matches else "none of"
    raise UserError(f"{option}: {query!r} is {kind} {listed}")
