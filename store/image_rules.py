"""Which images a repository's configuration may name: those that the operator allows."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from store.repo_config import RepositoryConfig
from store.repo_yaml import Mistake, RepositoryConfigurationError, read_document

SETTING = "ACROUTER_SANDBOX_IMAGES"


def named_images(config: RepositoryConfig) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each image that the configuration names, after its path of keys."""
    if config.image:
        yield ("image",), config.image
    for name, service in config.services.items():
        yield ("services", name, "image"), service.image


def why_not(image: str, allowed: str) -> str | None:
    """Return why an image may not be used, as a sentence; None where it may.

    `allowed` holds patterns with spaces between. An image without a tag or digest is its `latest`; a pattern without
    one that ends in `*` means all of them.
    """
    name, version = _parts(image)
    candidates = {(name, version), (name, version or ":latest")}
    patterns = allowed.split()
    if any(_fits(candidate, pattern) for candidate in candidates for pattern in patterns):
        return None
    offered = f"Allowed are: {', '.join(patterns)}" if patterns else "None is allowed"
    return f"the operator of acrouter does not allow the image '{image}'. {offered} ({SETTING})."


def _parts(text: str) -> tuple[str, str]:
    """Part an image, or a pattern, into its name and its tag or digest: a colon before a slash is a registry's port."""
    *path, last = text.split("/")
    end = min((place for mark in ":@" if (place := last.find(mark)) >= 0), default=len(last))
    return "/".join([*path, last[:end]]), last[end:]


def _fits(candidate: tuple[str, str], pattern: str) -> bool:
    name, version = _parts(pattern)
    if not version:
        return fnmatchcase("".join(candidate), pattern)
    # Apart from each other: `postgres:*` is no registry `postgres:5000`.
    return fnmatchcase(candidate[0], name) and fnmatchcase(candidate[1], version)


def check_images(config: RepositoryConfig, text: str, allowed: str) -> None:
    """Make sure that every image of a configuration, which `text` describes, may be used.

    Raises:
        RepositoryConfigurationError: one mistake for each that may not, with its line.
    """
    refused = [(path, words) for path, image in named_images(config) if (words := why_not(image, allowed)) is not None]
    if refused:
        document = read_document(text)
        raise RepositoryConfigurationError(
            *(Mistake(document.line_of(path), f"{'.'.join(path)}: {words}") for path, words in refused)
        )
