"""Keys that stand twice in one mapping of a YAML file: its parser takes the last of them without a word."""

import yaml


def doubled_key(node: yaml.Node) -> yaml.ScalarNode | None:
    """Return the first key, at whatever depth, that its mapping has already."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    return key
                seen.add(key.value)
            if (found := doubled_key(value)) is not None:
                return found
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            if (found := doubled_key(item)) is not None:
                return found
    return None
