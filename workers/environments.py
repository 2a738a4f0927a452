"""Where a task's sandboxes start from: the image with the repository's dependencies, and the services beside it.

What the repository asks for and cannot have is no reason to stop: the model works without it, and the verification says
what is missing and verifies nothing.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.ahead import Opener
from sandbox.errors import ImageError, SandboxError, SandboxUnavailable
from sandbox.results import TestReport
from sandbox.setup_plan import detect
from sandbox.types import Backend, Limits, Sandbox, SandboxSpec, Service
from store.image_rules import why_not
from store.repo_config import RepositoryConfig
from workers.run import Run

_NO_TESTS = 5
"""What pytest ends with where there was nothing to run: no test counts as failed."""


@dataclass(frozen=True)
class Environment:
    """What every sandbox of a task has."""

    image: str
    services: Sequence[Service] = ()
    setup: tuple[str, ...] = ()
    """The commands that made the image."""
    missing: Sequence[str] = ()
    """What the repository asks for and cannot have, as sentences."""

    def unmeasurable(self, command: str) -> TestReport | None:
        """Return the report of tests that could not be run, where something is missing: it is no measure of a patch."""
        if not self.missing:
            return None
        return TestReport(command, {}, _NO_TESTS, False, 0.0, "", " ".join(self.missing))


class WithServices:
    """An Opener whose sandboxes have services beside them."""

    def __init__(self, opener: Opener, services: Sequence[Service]) -> None:
        self._opener = opener
        self._services = tuple(services)

    def open(self, spec: SandboxSpec) -> Sandbox:
        return self._opener.open(replace(spec, services=self._services))


def prepare_environment(
    run: Run,
    config: RepositoryConfig,
    archive: Path,
    labels: dict[str, str],
    limits: Limits,
    *,
    shared_with: str,
    missing_already: Sequence[str] = (),
) -> Environment:
    """Return the environment that a repository's configuration asks for; `missing_already` are parts of its tree.

    `shared_with` says whose code may use what the set-up leaves: see `sandbox.setup_sharing`.

    Raises:
        ImageError: the operator's own image cannot be had, or the set-up failed.
        SandboxUnavailable: the Docker daemon does not answer.
    """
    missing = list(missing_already)
    own = _own_image(run, config, missing)
    image, setup = _set_up(run, config, archive, labels, own, shared_with)
    services = _services(run, config, missing)
    if services and not missing:
        _try_out(run.runtime.backend, SandboxSpec(image, labels, limits, services), missing)
    for sentence in missing:
        run.note(f"{sentence} Nothing can be verified without it.")
    return Environment(image, () if missing else services, setup, tuple(missing))


def _own_image(run: Run, config: RepositoryConfig, missing: list[str]) -> str:
    if not config.image:
        return ""
    try:
        return run.runtime.backend.ensure_image(_allowed(run, config.image))
    except SandboxUnavailable:
        raise
    except SandboxError as error:
        missing.append(f"The image {config.image} is missing: {error}")
        return ""


def _set_up(
    run: Run, config: RepositoryConfig, archive: Path, labels: dict[str, str], own: str, shared_with: str
) -> tuple[str, tuple[str, ...]]:
    """The image with the repository's dependencies, made once for each circle and state of its lock files, and
    the commands that made it.
    """
    backend = run.runtime.backend
    base = own or backend.ensure_base()
    found = detect(archive, commands=config.setup or None, base=base, shared_with=shared_with)
    plan = replace(found, base=own)
    for source, image in plan.named_images:
        if not config.image and why_not(image, run.runtime.settings.sandbox_images) is None:
            run.note(f"{source} names the image {image}. `image: {image}` in .acrouter.yml would have it used.")
    if not plan.commands:
        return base, ()
    run.note(f"Setting the repository up ({plan.source}).", commands=list(plan.commands))
    image = backend.prepare(archive, plan, timeout_s=run.runtime.settings.setup_timeout_s, labels=labels)
    return image, tuple(plan.commands)


def _services(run: Run, config: RepositoryConfig, missing: list[str]) -> tuple[Service, ...]:
    most = run.runtime.settings.max_services
    if len(config.services) > most:
        missing.append(f"Services asked for: {len(config.services)}, allowed: {most} (ACROUTER_MAX_SERVICES).")
        return ()
    services = []
    for name, wanted in config.services.items():
        try:
            image = run.runtime.backend.ensure_service_image(_allowed(run, wanted.image))
            command = tuple(shlex.split(wanted.command))
        except SandboxUnavailable:
            raise
        except (SandboxError, ValueError) as error:
            missing.append(f"The service {name} ({wanted.image}) is missing: {error}")
            continue
        services.append(Service(name, image, wanted.env, command, wanted.ready, tuple(wanted.writable)))
    return tuple(services)


def _allowed(run: Run, image: str) -> str:
    """Return `image`. The operator may have changed his mind since the configuration was read.

    Raises:
        ImageError: it may not be used.
    """
    refused = why_not(image, run.runtime.settings.sandbox_images)
    if refused is not None:
        raise ImageError(refused)
    return image


def _try_out(backend: Backend, spec: SandboxSpec, missing: list[str]) -> None:
    """Start the services once, so that one that does not start is known before money is spent."""
    try:
        backend.open(spec).close()
    except SandboxUnavailable:
        raise
    except SandboxError as error:
        missing.append(str(error))
