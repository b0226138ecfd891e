"""YAML in which a repeated key is an error: nothing is silently lost."""

from typing import Any

import yaml


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
