"""The image and the services that a repository asks for, and what happens where they cannot be had."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sandbox.comparison import results_of
from sandbox.errors import ImageError, SandboxError, SandboxUnavailable
from sandbox.types import Limits, SandboxSpec, SetupPlan
from store.repo_config import RepositoryConfig, parse_repository_config
from tests.support.repositories import make_archive
from workers.environments import Environment, WithServices, prepare_environment
from workers.run import Run

ASKED = parse_repository_config(
    """
    image: ghcr.io/acme/ci:3
    services:
      database: {image: "postgres:16", env: {POSTGRES_PASSWORD: x}, command: "postgres -c 'fsync = off'"}
    """
)


class Images:
    """A backend with the images of `there`, whose sandboxes do not start where `broken` says why."""

    def __init__(self, there: set[str], broken: str = "") -> None:
        self.there = there
        self.broken = broken
        self.opened: list[SandboxSpec] = []

    def ensure_base(self) -> str:
        return "base"

    def ensure_image(self, image: str) -> str:
        if image not in self.there:
            raise ImageError(f"Cannot pull {image}: no such host")
        return f"adopted {image}"

    def ensure_service_image(self, image: str) -> str:
        return self.ensure_image(image).removeprefix("adopted ")

    def prepare(self, _archive: Path, plan: SetupPlan, *, timeout_s: float, labels: Mapping[str, str]) -> str:
        return f"set up on {plan.base or 'base'}"

    def open(self, spec: SandboxSpec) -> Any:
        self.opened.append(spec)
        if self.broken:
            raise SandboxError(self.broken)
        return SimpleNamespace(close=lambda: None)


class Notes:
    """The part of a run that an environment is made with."""

    def __init__(self, backend: Images, allowed: str, max_services: int = 5) -> None:
        settings = SimpleNamespace(sandbox_images=allowed, setup_timeout_s=1.0, max_services=max_services)
        self.runtime = SimpleNamespace(backend=backend, settings=settings)
        self.notes: list[str] = []

    def note(self, words: str, **_: object) -> None:
        self.notes.append(words)


def prepare(
    tmp_path: Path,
    backend: Images,
    config: RepositoryConfig = ASKED,
    allowed: str = "postgres:* ghcr.io/acme/*",
    max_services: int = 5,
) -> tuple[Environment, list[str]]:
    notes = Notes(backend, allowed, max_services)
    archive = make_archive(tmp_path / "tree.tar", {"requirements.txt": "x\n"})
    made = prepare_environment(cast("Run", notes), config, archive, {"task": "1"}, Limits(), shared_with="a test")
    return made, notes.notes


def test_what_is_asked_for_and_there_is_what_every_sandbox_has(tmp_path: Path) -> None:
    backend = Images({"ghcr.io/acme/ci:3", "postgres:16"})
    environment, notes = prepare(tmp_path, backend)
    assert environment.image == "set up on adopted ghcr.io/acme/ci:3"
    (service,) = environment.services
    assert (service.name, service.image, service.command) == (
        "database",
        "postgres:16",
        ("postgres", "-c", "fsync = off"),
    )
    assert environment.missing == ()
    assert environment.unmeasurable("pytest") is None
    assert [spec.services for spec in backend.opened] == [(service,)]  # tried out before money is spent
    assert len(notes) == 1
    WithServices(backend, environment.services).open(SandboxSpec("i", {}))
    assert backend.opened[-1] == SandboxSpec("i", {}, services=(service,))


@pytest.mark.parametrize(
    ("backend", "allowed", "words"),
    [
        (Images({"postgres:16"}), "postgres:* ghcr.io/acme/*", "The image ghcr.io/acme/ci:3 is missing: Cannot pull"),
        (Images({"ghcr.io/acme/ci:3"}), "postgres:* ghcr.io/acme/*", "The service database (postgres:16) is missing"),
        (Images({"ghcr.io/acme/ci:3", "postgres:16"}), "ghcr.io/acme/*", "the operator of acrouter does not allow"),
        (
            Images({"ghcr.io/acme/ci:3", "postgres:16"}, "The service database ended."),
            "* ",
            "The service database ended.",
        ),
    ],
    ids=["no image", "no service", "not allowed", "does not start"],
)
def test_what_cannot_be_had_is_named_and_nothing_can_be_measured(
    tmp_path: Path, backend: Images, allowed: str, words: str
) -> None:
    environment, notes = prepare(tmp_path, backend, allowed=allowed)
    assert environment.services == ()
    report = environment.unmeasurable("pytest")
    assert report is not None
    assert words in report.note
    assert results_of(report) == {}
    assert any(words in note and "Nothing can be verified without it." in note for note in notes)


def test_of_more_services_than_the_operator_allows_none_is_started(tmp_path: Path) -> None:
    backend = Images({"ghcr.io/acme/ci:3", "postgres:16"})
    environment, notes = prepare(tmp_path, backend, max_services=0)
    assert environment.missing == ("Services asked for: 1, allowed: 0 (ACROUTER_MAX_SERVICES).",)
    assert (environment.services, backend.opened) == ((), [])
    assert "Nothing can be verified without it." in notes[-1]


def test_without_a_wish_the_base_image_is_used_and_nothing_is_tried(tmp_path: Path) -> None:
    backend = Images(set())
    environment, _ = prepare(tmp_path, backend, RepositoryConfig())
    assert environment == Environment("set up on base", setup=("python -m pip install --no-input -r requirements.txt",))
    assert backend.opened == []


@pytest.mark.parametrize("asked_for", ["ensure_image", "ensure_service_image", "open"])
def test_a_daemon_that_does_not_answer_is_waited_for_and_not_called_missing(tmp_path: Path, asked_for: str) -> None:
    backend = Images({"ghcr.io/acme/ci:3", "postgres:16"})

    def away(_: object) -> None:
        raise SandboxUnavailable("the Docker daemon does not answer")

    setattr(backend, asked_for, away)
    with pytest.raises(SandboxUnavailable):
        prepare(tmp_path, backend)
