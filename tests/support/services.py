"""Starts real servers for one test session. A test whose service is missing fails; it is never skipped."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import redis

_SHARED_MEMORY = Path("/dev/shm")
_CLUSTER = "acrouter-pg-"
"""Begins the names of the clusters' folders; the process whose tests use it follows."""
_ROOM_OF_A_CLUSTER = 2 << 30
"""Its databases are dropped as their tests end: it needs a tenth of this, and several processes begin at once."""


class ServiceMissingError(Exception):
    """A server that the tests need is not installed; `make test` installs it."""


def free_port() -> int:
    """Return a TCP port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_program(name: str, *extra: str) -> str:
    """Return a program's path, looking into `extra` glob patterns too."""
    if found := shutil.which(name):
        return found
    for pattern in extra:
        for path in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            return str(path)
    raise ServiceMissingError(f"{name} is not installed. Run `make test`, which installs what the tests need.")


def wait_until(ready: "object", timeout_s: float = 30.0, what: str = "service") -> None:
    """Call `ready` until it returns something true."""
    assert callable(ready)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if ready():
            return
        time.sleep(0.05)
    raise TimeoutError(f"{what} was not ready within {timeout_s} s")


@contextmanager
def redis_server() -> Iterator[str]:
    """Yield the URL of a Redis of our own."""
    port = free_port()
    process = subprocess.Popen(
        [find_program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
    )
    try:
        client = redis.Redis(port=port)

        def answers() -> bool:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

        wait_until(answers, what="Redis")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(10)


def _memory() -> Path | None:
    """Return a folder in memory that has room for a cluster; None: this machine has none."""
    try:
        free = shutil.disk_usage(_SHARED_MEMORY).free
    except FileNotFoundError:
        return None
    return _SHARED_MEMORY if free >= _ROOM_OF_A_CLUSTER else None


def _remove_left_clusters(memory: Path) -> None:
    """End and remove the clusters of tests that were killed: they would keep their memory for ever."""
    for folder in memory.glob(f"{_CLUSTER}*"):
        owner = folder.name.removeprefix(_CLUSTER).partition("-")[0]
        if not owner.isdecimal() or Path("/proc", owner).exists():
            continue
        with suppress(OSError, ValueError, IndexError):
            server = int((folder / "data" / "postmaster.pid").read_text().split()[0])
            if str(folder).encode() in Path("/proc", str(server), "cmdline").read_bytes():
                os.kill(server, signal.SIGQUIT)  # at once: nobody needs what it holds
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL (without a database name) of a Postgres of our own, for a throw-away cluster.

    It lives in memory where it can: on a busy disk, to remove what its databases left took minutes.
    """
    initdb = find_program("initdb", "/usr/lib/postgresql/*/bin/initdb")
    server = str(Path(initdb).with_name("postgres"))
    port = free_port()
    memory = _memory()
    if memory is not None:
        _remove_left_clusters(memory)
    folder = Path(tempfile.mkdtemp(prefix=f"{_CLUSTER}{os.getpid()}-", dir=memory))
    # Postgres refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    data = folder / "data"
    # fsync off: the cluster is thrown away, and the tests are not about Postgres' own durability.
    subprocess.run(
        [initdb, "-D", str(data), "-U", "acrouter", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8"],
        check=True,
        user=user,
        capture_output=True,
        cwd="/",
    )
    options = ["listen_addresses=127.0.0.1", "fsync=off", "max_connections=200", f"port={port}"]
    process = subprocess.Popen(
        [server, "-D", str(data), "-k", str(folder), *(part for option in options for part in ("-c", option))],
        user=user,
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    base = f"postgresql://acrouter@127.0.0.1:{port}"
    try:

        def answers() -> bool:
            try:
                psycopg.connect(f"{base}/postgres").close()
            except psycopg.OperationalError:
                return False
            return True

        wait_until(answers, what="Postgres")
        yield base
    finally:
        process.send_signal(signal.SIGINT)  # Postgres' fast shutdown: it waits for nobody's connection
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def create_postgres_database(base: str, name: str, template: str = "template1") -> str:
    """Create a database, empty or a copy of another one, and return its SQLAlchemy URL."""
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return f"{base}/{name}".replace("postgresql://", "postgresql+psycopg://")


def drop_postgres_database(base: str, name: str) -> None:
    """Remove a database, whoever is still connected to it."""
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
