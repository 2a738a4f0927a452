"""What a repository says of its own containers: a command of its devcontainer, and the images that it names."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.setup_tree import Found, Tree, tried

DEVCONTAINERS = (".devcontainer/devcontainer.json", ".devcontainer.json")
DOCKERFILES = ("Dockerfile", ".devcontainer/Dockerfile")
_COMMANDS = ("onCreateCommand", "updateContentCommand", "postCreateCommand")
"""In the order in which they are run (https://containers.dev/implementors/json_reference/#lifecycle-scripts)."""
# What is read may be made to stall it: what has no end goes to the text's, so that no place is looked at twice.
_STRING = r'"(?:\\.|[^"\\])*(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_UNTYPABLE = re.compile("[\0\ud800-\udfff]")
"""What JSON can spell and no command can hold."""
_FROM = re.compile(
    r"^[ \t]*FROM[ \t]+(?:--platform=\S+[ \t]+)?(\S+)(?:[ \t]+AS[ \t]+(\S+))?", re.IGNORECASE | re.MULTILINE
)


def devcontainer(tree: Tree) -> Found | None:
    """Return the commands that a devcontainer runs once; they were made for another machine and may fail."""
    for name in DEVCONTAINERS:
        data = _json_with_comments(tree.files.get(name, ""))
        commands = [tried(command, f"what {name} names") for key in _COMMANDS for command in _shell(data.get(key))]
        if commands:
            return Found(commands, name)
    return None


def named_images(tree: Tree) -> list[tuple[str, str]]:
    """Return the images that the repository's own containers start from, each after the file that says so."""
    found = []
    for name in DEVCONTAINERS:
        image = _json_with_comments(tree.files.get(name, "")).get("image")
        if isinstance(image, str) and not _UNTYPABLE.search(image):
            found.append((name, image))
    for name in DOCKERFILES:
        stages = set()
        for image, stage in _FROM.findall(tree.files.get(name, "")):
            if image not in stages and image != "scratch" and "$" not in image:
                found.append((name, image))
            stages.add(stage)
    return found


def _shell(value: object) -> Iterator[str]:
    """A command is a text for the shell, a list of arguments, or an object of commands."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        value = shlex.join(value)
    if isinstance(value, str):
        if value.strip() and not _UNTYPABLE.search(value):
            yield value.strip()
    elif isinstance(value, dict):
        for each in value.values():
            if not isinstance(each, dict):
                yield from _shell(each)


def _json_with_comments(text: str) -> Mapping[str, Any]:
    plain = _COMMENT.sub(lambda match: match.group(1) or " ", text)
    try:
        data = json.loads(_LAST_COMMA.sub(lambda match: match.group(1) or "", plain))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
