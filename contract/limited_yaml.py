"""YAML without repeated keys, references and deep nesting: nothing is silently lost, and nothing grows."""

from typing import Any

import yaml

from headstart.contract.untrusted_json import MAX_DEPTH


def parse_yaml(content: bytes) -> Any:  # noqa: ANN401 - any value of YAML
    """Parse one YAML document.

    Raises:
        yaml.YAMLError: It is not YAML, repeats a key, or is nested deeper than 32. Or it refers to a part of itself: a
            few lines of references can expand to billions.
    """
    return yaml.load(content, _Loader)


class UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that raises an error for a key that a mapping has twice, of which YAML keeps the last value."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - a name or None
        """Compose a mapping.

        Raises:
            yaml.YAMLError: It has a key twice.
        """
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            # The base class rejects other keys as unhashable.
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.YAMLError(f"it has the key {key.value!r} twice (line {key.start_mark.line + 1})")
                seen.add(key.value)
        return node


class _Loader(UniqueKeyLoader):
    """A loader that also rejects references and deep nesting."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        place = f"(line {self.line + 1})"
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"references, *, are not allowed; write the value out {place}")
        if self._depth == MAX_DEPTH:
            raise yaml.YAMLError(f"it is nested deeper than the limit of {MAX_DEPTH} levels {place}")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node
