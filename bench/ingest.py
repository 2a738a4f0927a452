"""`acrouter bench ingest`: how fast webhooks are taken in, beside Probot with an empty handler on the same machine.

Each of ours is in the database, on the disk, before it is acknowledged; Probot's are nowhere. One process serves each
side; the load comes from a process of its own over a fixed number of connections, with signed bodies of 12 KB: GitHub's
published example of an opened issue, its text made longer.

Each side is measured in several rounds, in turn; the figures are medians.

- `rps`: answers a second, as fast as they come. `ratio_to_probot`: by Probot's in the same run.
- `p99_ms`: the latency at half of that rate, counted from the moment a request was due.
- `lost`: acknowledged deliveries that are not in the database after the server was ended by SIGKILL under load.

Needs Node.js and npm, and a Postgres server by its URL in ACROUTER_BENCH_POSTGRES; its databases are made and dropped.
"""

import json
import os
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from sqlmodel import select

from bench.errors import BenchError
from bench.postgres import SETTING, server_url, throwaway_database
from bench.serving import serving
from bot.demo.throwaway import free_port, make_private_key
from bot.signature import sign
from store.database import Database
from store.tables import Delivery

CONNECTIONS = 32
"""GitHub is tens of milliseconds away: of thousands a second more than these would be on their way at once."""
ROUNDS = 3
"""Machines change their speed in minutes: each is measured this often, in turn, and the median told."""
BODY_BYTES = 12 * 1024
WARM_UP_S = 2.0
MEASURE_S = 5.0
_ROOT = Path(__file__).resolve().parent.parent


def run(console: Console, *, connections: int = CONNECTIONS) -> dict[str, float]:
    """Measure and return the figures by their names.

    Raises:
        BenchError: Node.js or Postgres is missing, or a server did not come up.
    """
    postgres = server_url()
    if not postgres:
        raise BenchError(f"Set {SETTING} to a server, e.g. postgresql://postgres@localhost/postgres.")
    secret = secrets.token_hex(32)
    with tempfile.TemporaryDirectory(prefix="acrouter-ingest-") as folder:
        with console.status("installing Probot"):
            probot = _install_probot()
        bench = _Bench(Path(folder), secret, _body(probot), connections)
        rounds: dict[str, list[tuple[float, float]]] = {"probot": [], "sqlite": [], "postgres": []}
        lost: dict[str, int] = {}
        for number in range(ROUNDS):
            with console.status(f"Probot, {number + 1} of {ROUNDS}"), bench.probot(probot) as port:
                rounds["probot"].append(bench.measure(port))
            for name in ("sqlite", "postgres"):
                with (
                    console.status(f"{name}, {number + 1} of {ROUNDS}"),
                    _database(name, Path(folder) / str(number), postgres) as url,
                ):
                    with bench.ours(url) as (port, _):
                        rounds[name].append(bench.measure(port))
                    lost[name] = lost.get(name, 0) + bench.lost(url)
    return _figures(rounds, lost)


def _figures(rounds: Mapping[str, Sequence[tuple[float, float]]], lost: Mapping[str, int]) -> dict[str, float]:
    """Return the medians over the rounds; the ratio is that of the medians."""
    rps = {name: statistics.median(rps for rps, _ in measured) for name, measured in rounds.items()}
    figures: dict[str, float] = {}
    for name, measured in rounds.items():
        figures[f"ingest.{name}.rps"] = rps[name]
        if name in lost:
            figures[f"ingest.{name}.ratio_to_probot"] = rps[name] / rps["probot"]
        figures[f"ingest.{name}.p99_ms"] = statistics.median(p99 for _, p99 in measured)
        if name in lost:
            figures[f"ingest.{name}.lost"] = float(lost[name])
    return figures


class _Bench:
    def __init__(self, folder: Path, secret: str, body: bytes, connections: int) -> None:
        self._secret = secret
        self._connections = connections
        self._body = folder / "body.json"
        self._body.write_bytes(body)
        self._signature = sign(body, secret)

    def measure(self, port: int) -> tuple[float, float]:
        """Return requests a second at full load, and the 99th percentile of the latency in ms at half of it."""
        os.sync()  # what was installed and made before is not to be written meanwhile
        self._load(port, WARM_UP_S)
        full = self._load(port, MEASURE_S)
        self._require_clean(full)
        rps = len(full["acknowledged"]) / full["seconds"]
        half = self._load(port, MEASURE_S, rate=rps / 2)
        self._require_clean(half)
        return rps, statistics.quantiles(half["latencies_s"], n=100)[98] * 1000

    def lost(self, url: str) -> int:
        """Kill the server in the middle of a load; return how many acknowledged deliveries are not in the database."""
        with self.ours(url) as (port, process):
            load = self._start_load(port, 4.0, 0.0)
            time.sleep(2.0)
            process.send_signal(signal.SIGKILL)
            acknowledged = set(_finished(load)["acknowledged"])
        if not acknowledged:
            raise BenchError("Nothing was acknowledged before the server was killed.")
        database = Database(url)
        with database.session() as session:
            kept = set(session.exec(select(Delivery.guid)).all())
        database.dispose()
        return len(acknowledged - kept)

    @contextmanager
    def ours(self, url: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        port = free_port()
        command = [sys.executable, "-m", "bench.ingest_server", str(port), url]
        environment = _environment({"WEBHOOK_SECRET": self._secret})
        with serving(command, port, environment, folder=_ROOT) as process:
            yield port, process

    @contextmanager
    def probot(self, folder: Path) -> Iterator[int]:
        port = free_port()
        environment = {
            "PORT": str(port),
            "APP_ID": "1",
            "PRIVATE_KEY": make_private_key(),
            "WEBHOOK_SECRET": self._secret,
            "NODE_ENV": "production",
        }
        with serving([_program("node"), str(folder / "server.js")], port, _environment(environment), folder=_ROOT):
            yield port

    def _load(self, port: int, seconds: float, *, rate: float = 0.0) -> dict[str, Any]:
        return _finished(self._start_load(port, seconds, rate))

    def _start_load(self, port: int, seconds: float, rate: float) -> subprocess.Popen[bytes]:
        options = {"port": port, "seconds": seconds, "rate": rate, "connections": self._connections, "body": self._body}
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "bench.load", *arguments, "--signature", self._signature]
        return subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE)

    @staticmethod
    def _require_clean(told: Mapping[str, Any]) -> None:
        if told["refused"] or told["broken"]:
            raise BenchError(f"{told['refused']} requests were refused and {told['broken']} connections broken.")


def _body(npm: Path) -> bytes:
    """An `issues` event as GitHub publishes it, with a longer text: 12 KB."""
    path = npm / "node_modules" / "@octokit" / "webhooks-examples" / "api.github.com" / "index.json"
    examples = next(each["examples"] for each in json.loads(path.read_bytes()) if each["name"] == "issues")
    body: dict[str, Any] = next(example for example in examples if example["action"] == "opened")
    missing = BODY_BYTES - len(_encoded(body))
    body["issue"]["body"] += (" It leaves the first price out." * BODY_BYTES)[:missing]
    return _encoded(body)


def _encoded(body: Mapping[str, Any]) -> bytes:
    """As GitHub does: without spaces."""
    return json.dumps(body, separators=(",", ":")).encode()


def _finished(load: subprocess.Popen[bytes]) -> dict[str, Any]:
    output, _ = load.communicate(timeout=120)
    if load.returncode != 0:
        raise BenchError(f"The load ended with {load.returncode}.")
    told: dict[str, Any] = json.loads(output)
    return told


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """What an operator has set for acrouter is left out: it would be measured too."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ACROUTER_")}
    return {**kept, **settings}


@contextmanager
def _database(kind: str, folder: Path, postgres: str) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'ingest.sqlite3'}"
        return
    with throwaway_database(postgres) as url:
        yield url


def _install_probot() -> Path:
    """Install the peer by its lock file into a cache beside the checkout, once."""
    folder = _ROOT / ".cache" / "bench-probot"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "server.js"):
        shutil.copy(_ROOT / "bench" / "probot" / name, folder / name)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run([_program("npm"), "ci", *options], cwd=folder, check=False, timeout=600)
    if done.returncode:
        raise BenchError("npm could not install Probot; its own words are above.")
    return folder


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BenchError(f"{name} is not installed.")
    return found
