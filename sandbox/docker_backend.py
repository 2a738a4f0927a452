"""Sandboxes as Docker containers."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import docker
import docker.errors
import requests
from docker import APIClient

from sandbox import docker_container, docker_services, setup_run
from sandbox.disk_bound import setup_bytes, too_large
from sandbox.docker_cache import ImageCache
from sandbox.docker_container import ContainerPlan
from sandbox.docker_line import DockerLine
from sandbox.docker_services import SERVICE_LABEL
from sandbox.errors import ImageError, SandboxError, SandboxUnavailable
from sandbox.guest_channel import GuestChannel, GuestGone
from sandbox.guest_sandbox import GuestSandbox
from sandbox.images import build
from sandbox.images.adopted import adopted, ensure_adopted, ensure_pulled
from sandbox.images.extra import ensure_packages, packaged
from sandbox.named_locks import NamedLocks
from sandbox.types import CacheLimits, Limits, Progress, SandboxSpec, SetupPlan

TASK_LABEL = "acrouter.task"
OWNER_LABEL = "acrouter.owner"
INSTANCE_LABEL = "acrouter.instance"
_ENVIRONMENTS = "acrouter/env"
_START_TIMEOUT_S = 60.0
_LEAST_CPUS = 0.01


class DockerBackend:
    """Fulfils `sandbox.types.Backend` with the Docker daemon that DOCKER_HOST or the default socket names.

    `instance` tells installations that share one daemon apart: leftovers are only looked for among one's own.
    `runtime` is an OCI runtime that the daemon knows, such as gVisor's `runsc`. `packages` are Debian packages that the
    base image gets besides its own. Below `data_dir` stands when each image was used.
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
        data_dir: Path | None = None,
    ) -> None:
        self._base_image = base_image
        self._limits = limits
        self._instance = instance
        self._runtime = runtime or None
        self._packages = tuple(packages)
        self._cache = ImageCache(instance, data_dir and data_dir.absolute() / "images")
        self._client: tuple[int, APIClient] | None = None
        self._images = NamedLocks()

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
            raise _unavailable(error) from error

    def require_settings(self) -> None:
        """Make sure that the daemon can start what the settings describe: it would refuse each sandbox, one by one.

        Raises:
            SandboxUnavailable: it cannot; the message names the setting.
        """
        with _docker_errors("ask the daemon what it offers"):
            daemon = self._api.info()
        runtimes = sorted(daemon.get("Runtimes") or {})
        # A containerd shim goes by its full name or path, and the daemon lists none that it was not told of.
        listed = self._runtime and not {".", "/"} & set(self._runtime)
        if listed and runtimes and self._runtime not in runtimes:
            raise SandboxUnavailable(
                f"ACROUTER_SANDBOX_RUNTIME: the Docker daemon knows no runtime '{self._runtime}'. "
                f"It knows {', '.join(runtimes)}."
            )
        processors = int(daemon.get("NCPU") or 0)
        for setting, cpus in (
            ("ACROUTER_SANDBOX_CPUS", self._limits.cpus),
            ("ACROUTER_SERVICE_CPUS", self._limits.service_cpus),
        ):
            if processors and not _LEAST_CPUS <= cpus <= processors:
                raise SandboxUnavailable(
                    f"{setting}={cpus:g}: Docker takes {_LEAST_CPUS:g} to {processors}, the processors of its machine."
                )

    def ensure_base(self, progress: Progress | None = None) -> str:
        with _docker_errors("look for the base image"):
            base = build.ensure_base(self._api, self._base_image, progress)
            with self._images.held(packaged(self._api, base, self._packages)):
                return self._used(ensure_packages(self._api, base, self._packages, self._cache.labels, progress))

    def ensure_image(self, image: str) -> str:
        with _docker_errors(f"look for the image {image}"):
            ensure_pulled(self._api, image)
            with self._images.held(adopted(self._api, image)):
                return self._used(ensure_adopted(self._api, image, self._cache.labels))

    def ensure_service_image(self, image: str) -> str:
        if self._runtime:
            raise ImageError(
                f"Services are not started under the runtime {self._runtime}, whose containers share no network."
            )
        with _docker_errors(f"look for the image {image}"):
            return ensure_pulled(self._api, image)

    def prepare(self, archive: Path, plan: SetupPlan, *, timeout_s: float, labels: Mapping[str, str]) -> str:
        """Set up once and snapshot: dependencies go to /opt/venv, and with it into `acrouter/env:<cache_key>`.

        The tree itself is no part of the image; it is put in fresh each time. What an editable install writes into the
        tree (a version file, say) is kept beside the venv and put in with it: see `setup_run`.
        """
        base = plan.base or self.ensure_base()
        if not plan.commands:
            return base
        image = f"{_ENVIRONMENTS}:{plan.cache_key}"
        with self._images.held(image):  # two tasks of one repository set up once
            if build.is_present(self._api, image):
                return self._used(image)
            container, sandbox = self._start(
                ContainerPlan(base, self._limits, self._labels(labels), for_setup=True, runtime=self._runtime)
            )
            with sandbox:
                setup_run.run(sandbox, archive, plan, timeout_s=timeout_s, limits=self._limits, root="/")
                with _docker_errors("snapshot the set-up"):
                    self._check_size(container)
                    self._api.commit(
                        container,
                        repository=_ENVIRONMENTS,
                        tag=plan.cache_key,
                        changes=build.changes({TASK_LABEL: "", OWNER_LABEL: "", **self._cache.labels}),
                    )
            return self._used(image)

    def identify(self, image: str) -> str:
        with _docker_errors(f"look at the image {image}"):
            return str(self._api.inspect_image(image)["Id"])  # type: ignore[no-untyped-call]

    def open(self, spec: SandboxSpec) -> GuestSandbox:
        labels = self._labels(spec.labels)
        names = [service.name for service in spec.services]
        self._cache.note_use(spec.image)
        plan = ContainerPlan(spec.image, spec.limits, labels, runtime=self._runtime, local_names=names)
        container, sandbox = self._start(plan)
        if not spec.services:
            return sandbox
        try:
            with _docker_errors(f"start the services {', '.join(names)}"):
                started = [
                    (docker_services.start(self._api, container, service, spec.limits, labels), service)
                    for service in spec.services
                ]
                for one, service in started:
                    docker_services.wait_ready(self._api, one, service)
        except BaseException:
            sandbox.close()
            self._remove_services(container)
            raise
        return sandbox.ending_with(partial(self._remove_services, container))

    def remove_leftovers(self, running_tasks: Callable[[], frozenset[str]]) -> int:
        found = self._list()
        keep = running_tasks()
        there = {container["Id"] for container in found}
        # A service whose sandbox has ended is left over as well: a killed worker's sandboxes end by themselves.
        return sum(
            self._remove(container["Id"])
            for container in found
            if container["Labels"].get(TASK_LABEL) not in keep
            or container["Labels"].get(SERVICE_LABEL, container["Id"]) not in there
        )

    def remove_task(self, task: str) -> int:
        return sum(self._remove(found["Id"]) for found in self._list() if found["Labels"].get(TASK_LABEL) == task)

    def evict(self, limits: CacheLimits) -> int:
        with _docker_errors("remove old images"):
            return self._cache.evict(self._api, limits, self._images)

    def _used(self, image: str) -> str:
        self._cache.note_use(image)
        return image

    @property
    def _api(self) -> APIClient:
        # A connection must not be shared with a forked worker.
        if self._client is None or self._client[0] != os.getpid():
            try:
                self._client = (os.getpid(), docker.from_env(timeout=120).api)
            except docker.errors.DockerException as error:
                raise _unavailable(error) from error
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

    def _list(self, *labels: str) -> list[dict[str, Any]]:
        """Return our containers, sandboxes and services, that have these labels."""
        filters = {"label": [TASK_LABEL, f"{INSTANCE_LABEL}={self._instance}", *labels]}
        with _docker_errors("list the sandboxes"):
            return list(self._api.containers(all=True, filters=filters))

    def _remove_services(self, sandbox: str) -> None:
        for container in self._list(f"{SERVICE_LABEL}={sandbox}"):
            self._remove(container["Id"])

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
        """Look once more from outside: what a set-up changed in place is copied, and grew by nothing."""
        found = self._api.containers(all=True, size=True, filters={"id": container})
        written = int(found[0].get("SizeRw", 0)) if found else 0
        if written > setup_bytes(self._limits):
            raise too_large(written, self._limits)


@contextmanager
def _docker_errors(what: str) -> Iterator[None]:
    try:
        yield
    except requests.ConnectionError as error:
        raise SandboxUnavailable(f"Cannot {what}: the Docker daemon does not answer. {error}") from error
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise SandboxError(f"Cannot {what}: {error}") from error


def _unavailable(error: Exception) -> SandboxUnavailable:
    if "Permission denied" in str(error):  # the socket's, somewhere within what the client tells
        return SandboxUnavailable(
            "This user may not use the Docker daemon. Add the user to the group `docker`, and log in again."
        )
    return SandboxUnavailable(
        f"The Docker daemon does not answer: {error} Install and start it (`apt-get install docker.io`)."
    )
