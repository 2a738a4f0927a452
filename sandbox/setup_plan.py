"""Finds out how to install what a repository needs, from its files alone; nothing of it is run here."""

import hashlib
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from sandbox.archives import read_member
from sandbox.errors import CheckoutError
from sandbox.setup_container import DEVCONTAINERS, DOCKERFILES, devcontainer, named_images
from sandbox.setup_java import BUILD_FILES, BUILD_SUFFIXES, gradle, maven
from sandbox.setup_python import LOCKS, METADATA, REQUIREMENTS, python
from sandbox.setup_tree import Found, Tree, where_there_is
from sandbox.types import SetupPlan

_NODE_LOCKS = (
    ("pnpm-lock.yaml", "pnpm", "pnpm@9", "install --frozen-lockfile"),
    ("yarn.lock", "yarn", "yarn@1", "install --frozen-lockfile"),
    ("package-lock.json", "npm", "", "ci --no-audit --no-fund"),
    ("npm-shrinkwrap.json", "npm", "", "ci --no-audit --no-fund"),
)
"""Lock file, program, npm's package of it, and how it installs exactly what the file says."""
_BUILD_FILES = (
    "package.json",
    ".yarnrc.yml",
    "go.mod",
    "go.sum",
    "Cargo.toml",
    "Cargo.lock",
    *(n for n, _, _, _ in _NODE_LOCKS),
)
_KEY_VERSION = b"6"
"""Raise it where the same files are set up in another way: what was kept before is not used again."""
_KEYED = frozenset({*METADATA, *REQUIREMENTS, *LOCKS, *_BUILD_FILES})
"""What a set-up's result depends on, besides its commands."""


def detect(archive: Path, *, commands: Sequence[str] | None, base: str, shared_with: str) -> SetupPlan:
    """Return how to set up the tree in `archive`; `commands` from the configuration win (an empty list: nothing).

    `base` identifies the base image, `shared_with` says whose code the result is for: see `sandbox.setup_sharing`. A
    repository that needs nothing gets a plan without commands.

    Raises:
        CheckoutError: the archive cannot be read.
    """
    try:
        names = _names(archive)
        keys = _KEYED | {name for name in names if _is_of_a_java_build(name)}
        raw = read_member(archive, {*keys, *DEVCONTAINERS, *DOCKERFILES})
    except tarfile.TarError as error:
        raise CheckoutError(f"{archive.name} is not an uncompressed tar archive: {error}") from error
    tree = Tree({name: content.decode("utf-8", "replace") for name, content in raw.items()}, names)
    if commands is not None:
        found = Found(commands, ".acrouter.yml")
    else:
        answers = (detector(tree) for detector in DETECTORS)
        found = next((answer for answer in answers if answer is not None), Found((), "nothing to install"))
    keyed = {name: content for name, content in raw.items() if name in keys}
    key = _cache_key(found.commands, keyed, _layout(names), base, shared_with)
    return SetupPlan(tuple(found.commands), key, found.source, named_images=named_images(tree))


def _npm(tree: Tree) -> Found | None:
    if "package.json" not in tree.files:
        return None
    lock, program, package, arguments = next(
        (found for found in _NODE_LOCKS if found[0] in tree.files),
        ("package.json", "npm", "", "install --no-audit --no-fund --no-package-lock"),
    )
    linked = ""
    if program == "yarn" and (".yarnrc.yml" in tree.files or "__metadata:" in tree.files[lock]):
        package, arguments = "@yarnpkg/cli-dist@4", "install --immutable"
        # Its own way, Plug'n'Play, finds packages in a cache below the home, which is not kept.
        linked = "YARN_NODE_LINKER=node-modules "
    with_npm = f"{linked}npx --yes {package} {arguments}" if package else ""
    otherwise = f"elif command -v npx > /dev/null; then {with_npm}; " if with_npm else ""
    return Found([where_there_is(program, f"{linked}{program} {arguments}", otherwise)], lock)


def _go(tree: Tree) -> Found | None:
    return Found([where_there_is("go", "go mod download")], "go.mod") if "go.mod" in tree.files else None


def _cargo(tree: Tree) -> Found | None:
    return Found([where_there_is("cargo", "cargo fetch")], "Cargo.toml") if "Cargo.toml" in tree.files else None


DETECTORS: Sequence[Callable[[Tree], Found | None]] = (python, _npm, _go, _cargo, maven, gradle, devcontainer)
"""Each looks at the tree and answers with commands and their source, or None. The first answer wins.

Another language is another function here, and its file names in the set that `detect` reads."""


def _names(archive: Path) -> frozenset[str]:
    with tarfile.open(archive, "r:") as tar:
        return frozenset(PurePosixPath(name).as_posix() for name in tar.getnames())


def _is_of_a_java_build(name: str) -> bool:
    """Modules have files of their own, which name what they depend on."""
    return name.rsplit("/", 1)[-1] in BUILD_FILES or name.endswith(BUILD_SUFFIXES)


def _layout(names: frozenset[str]) -> list[str]:
    """Return the names at the root and below src/: an editable install's import map depends on them."""
    paths = (PurePosixPath(name).parts for name in names)
    return sorted({"/".join(parts[: 2 if parts[0] == "src" else 1]) for parts in paths if parts})


def _cache_key(
    commands: Sequence[str], raw: Mapping[str, bytes], layout: Sequence[str], base: str, shared_with: str
) -> str:
    digest = hashlib.sha256()
    parts = [
        _KEY_VERSION,
        shared_with.encode(),
        base.encode(),
        *(command.encode() for command in commands),
        b"",
        *(name.encode("utf-8", "surrogateescape") for name in layout),
        b"",
    ]
    for name in sorted(raw):
        parts += [name.encode("utf-8", "surrogateescape"), raw[name]]
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]
