"""Sandboxes as Docker containers."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import docker
import docker.errors
import requests
from docker import APIClient

from sandbox import docker_container, setup_run
from sandbox.docker_container import ContainerPlan
from sandbox.docker_line import DockerLine
from sandbox.errors import ImageError, SandboxError, SandboxUnavailable
from sandbox.guest_channel import GuestChannel, GuestGone
from sandbox.guest_sandbox import GuestSandbox
from sandbox.images import build
from sandbox.images.extra import ensure_packages
from sandbox.types import Limits, Progress, SandboxSpec, SetupPlan

TASK_LABEL = "acrouter.task"
OWNER_LABEL = "acrouter.owner"
INSTANCE_LABEL = "acrouter.instance"
_ENVIRONMENTS = "acrouter/env"
_START_TIMEOUT_S = 60.0
_SETUP_SIZE_FACTOR = 4
"""A set-up may write this many times the disk limit into the image; it holds whole dependency trees."""


class DockerBackend:
    """Fulfils `sandbox.types.Backend` with the Docker daemon that DOCKER_HOST or the default socket names.

    `instance` tells installations that share one daemon apart: leftovers are only looked for among one's own.
    `runtime` is an OCI runtime that the daemon knows, such as gVisor's `runsc`. `packages` are Debian packages that the
    base image gets besides its own.
    """

    name: Literal["docker", "bubblewrap"] = "docker"

    def __init__(
        self,
        base_image: str,
        limits: Limits,
        *,
        instance: str = "default",
        runtime: str | None = None,
        packages: Sequence[str] = (),
    ) -> None:
        self._base_image = base_image
        self._limits = limits
        self._instance = instance
        self._runtime = runtime or None
        self._packages = tuple(packages)
        self._client: tuple[int, APIClient] | None = None
        self._preparing = threading.Lock()

    def describe(self) -> str:
        return (
            "Docker containers: no network, an unprivileged user, no capabilities, a read-only root, and limits on "
            "memory, processor, processes and disk. They share this machine's kernel."
        )

    def ping(self) -> None:
        """Ask the daemon for a sign of life.

        Raises:
            SandboxUnavailable: it does not answer.
        """
        try:
            self._api.ping()
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise SandboxUnavailable(f"The Docker daemon does not answer: {error}") from error

    def ensure_base(self, progress: Progress | None = None) -> str:
        with _docker_errors("look for the base image"):
            base = build.ensure_base(self._api, self._base_image, progress)
            with self._preparing:
                return ensure_packages(self._api, base, self._packages, progress)

    def prepare(self, archive: Path, plan: SetupPlan, *, timeout_s: float, labels: Mapping[str, str]) -> str:
        """Set up once and snapshot: dependencies go to /opt/venv, and with it into `acrouter/env:<cache_key>`.

        The tree itself is no part of the image; it is put in fresh each time. What an editable install writes into the
        tree (a version file, say) is kept beside the venv and put in with it: see `setup_run`.
        """
        base = self.ensure_base()
        if not plan.commands:
            return base
        image = f"{_ENVIRONMENTS}:{plan.cache_key}"
        with self._preparing:  # two tasks of one repository set up once
            if build.is_present(self._api, image):
                return image
            container, sandbox = self._start(
                ContainerPlan(base, self._limits, self._labels(labels), for_setup=True, runtime=self._runtime)
            )
            with sandbox:
                setup_run.run(sandbox, archive, plan, timeout_s=timeout_s)
                with _docker_errors("snapshot the set-up"):
                    self._check_size(container)
                    self._api.commit(
                        container,
                        repository=_ENVIRONMENTS,
                        tag=plan.cache_key,
                        changes=["ENTRYPOINT []", 'CMD ["bash"]', f'LABEL {TASK_LABEL}=""', f'LABEL {OWNER_LABEL}=""'],
                    )
        return image

    def identify(self, image: str) -> str:
        with _docker_errors(f"look at the image {image}"):
            return str(self._api.inspect_image(image)["Id"])  # type: ignore[no-untyped-call]

    def open(self, spec: SandboxSpec) -> GuestSandbox:
        plan = ContainerPlan(spec.image, spec.limits, self._labels(spec.labels), runtime=self._runtime)
        return self._start(plan)[1]

    def remove_leftovers(self, running_tasks: Callable[[], frozenset[str]]) -> int:
        found = self._list()
        keep = running_tasks()
        return sum(self._remove(container) for container, task in found if task not in keep)

    def remove_task(self, task: str) -> int:
        return sum(self._remove(found) for found, of_task in self._list() if of_task == task)

    @property
    def _api(self) -> APIClient:
        # A connection must not be shared with a forked worker.
        if self._client is None or self._client[0] != os.getpid():
            try:
                self._client = (os.getpid(), docker.from_env(timeout=120).api)
            except docker.errors.DockerException as error:
                raise SandboxUnavailable(f"The Docker daemon does not answer: {error}") from error
        return self._client[1]

    def _labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {
            TASK_LABEL: labels.get("task", ""),
            OWNER_LABEL: labels.get("owner", ""),
            INSTANCE_LABEL: self._instance,
        }

    def _start(self, plan: ContainerPlan) -> tuple[str, GuestSandbox]:
        api = self._api
        with _docker_errors(f"start a sandbox from {plan.image}"):
            container = docker_container.create(api, plan)
            try:
                attached = api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stream": 1})
                channel = GuestChannel(DockerLine(attached), body_limit=plan.limits.output_bytes + 1024)
                api.start(container)
                channel.wait_ready(_START_TIMEOUT_S)
            except GuestGone as error:
                self._remove(container)
                raise ImageError(
                    f"A sandbox from the image {plan.image} does not start ({error}). An image needs python3 (3.9 or "
                    "newer), bash, tar and git; sandbox/images/Dockerfile makes one that has them."
                ) from error
            except BaseException:
                self._remove(container)
                raise
        return container, GuestSandbox(channel, partial(self._discard, container))

    def _list(self) -> list[tuple[str, str]]:
        with _docker_errors("list the sandboxes"):
            found = self._api.containers(
                all=True, filters={"label": [TASK_LABEL, f"{INSTANCE_LABEL}={self._instance}"]}
            )
        return [(container["Id"], container["Labels"].get(TASK_LABEL, "")) for container in found]

    def _remove(self, container: str) -> bool:
        """Remove a container with its processes; return whether it was there to remove."""
        with _docker_errors("remove a sandbox"):
            try:
                self._api.remove_container(container, force=True, v=True)
            except docker.errors.NotFound:
                return False
            except docker.errors.APIError as error:
                if error.response is None or error.response.status_code != 409:
                    raise
                # It ended by itself and Docker is removing it already.
                with contextlib.suppress(docker.errors.APIError):
                    self._api.wait(container, condition="removed", timeout=30)
        return True

    def _discard(self, container: str) -> None:
        self._remove(container)

    def _check_size(self, container: str) -> None:
        found = self._api.containers(all=True, size=True, filters={"id": container})
        written = int(found[0].get("SizeRw", 0)) if found else 0
        allowed = _SETUP_SIZE_FACTOR * self._limits.disk_mb << 20
        if written > allowed:
            raise ImageError(
                f"The set-up wrote {written >> 20} MB, more than the {allowed >> 20} MB it may "
                f"({_SETUP_SIZE_FACTOR} times ACROUTER_SANDBOX_DISK_MB)."
            )


@contextmanager
def _docker_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise SandboxError(f"Cannot {what}: {error}") from error
