"""Everything that the demo needs, started in this one process: a local GitHub, the models, and acrouter itself."""

import fcntl
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn

from bot.assembly import Ticker, make_jobs, make_runtime, open_database
from bot.dashboard.tokens import make_link_word
from bot.demo.errors import DemoError
from bot.demo.hub.story import Story
from bot.demo.materialise import BugRepository
from bot.demo.scene import set_scene
from bot.demo.scripted import ScriptedEndpoint
from bot.github.forge import GitHubForge
from bot.web import create_app, server_config
from sandbox.types import Backend, Progress
from store.data_dir import make_data_dir
from store.logs import configure_logging
from store.settings import Settings, load_settings
from workers.queues import LocalQueue
from workers.runtime import Runtime


@dataclass(frozen=True)
class Stage:
    """What the story plays on."""

    github: Story
    runtime: Runtime
    endpoint: ScriptedEndpoint | None
    """The scripted models; None where a paid one works."""
    web_url: str
    """Where acrouter itself listens."""

    def dashboard_link(self) -> str:
        """Return an address that signs in to the dashboard once."""
        return f"{self.web_url}/sign-in/link/{make_link_word(self.runtime.database)}"

    @property
    def scripted(self) -> bool:
        return self.endpoint is not None


@contextmanager
def only_demo(folder: Path) -> Iterator[None]:
    """Hold the demo's folder for this process.

    Raises:
        DemoError: another demo is running in it.
    """
    make_data_dir(folder.parent)
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DemoError(
                f"Another `acrouter demo` is running in {folder}. Wait for its end, or set ACROUTER_DATA_DIR to "
                "another folder."
            ) from error
        yield


@contextmanager
def set_stage(
    folder: Path,
    repositories: Sequence[BugRepository],
    *,
    paid_model: str,
    progress: Progress,
    watch: Callable[[Backend], Backend] = lambda backend: backend,
) -> Iterator[Stage]:
    """Start everything with an empty memory, and stop it again at the end.

    `watch` may put something between acrouter and its sandboxes, to see what is asked of them.

    Raises:
        SandboxUnavailable, ImageError: there is no sandbox here; the message says what to install.
        ConfigurationError: the paid model is unknown, has no price, or its key is not set.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        web_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        scene = stack.enter_context(
            set_scene(folder / "state", repositories, web_url=web_url, data_dir=folder, paid_model=paid_model)
        )
        settings = load_settings(**scene.settings)
        configure_logging(settings)
        runtime = _start_acrouter(stack, settings, listener, progress, watch)
        yield Stage(scene.github, runtime, scene.endpoint, web_url)


def _start_acrouter(
    stack: ExitStack,
    settings: Settings,
    listener: socket.socket,
    progress: Progress,
    watch: Callable[[Backend], Backend],
) -> Runtime:
    """Start what `acrouter up` starts, in threads; `stack` stops it."""
    database = open_database(settings)
    stack.callback(database.dispose)
    queue = LocalQueue(settings.concurrency)
    stack.callback(queue.close)
    runtime = make_runtime(settings, database, queue, GitHubForge(settings))
    runtime = replace(runtime, backend=watch(runtime.backend))
    stack.callback(runtime.stopping.set)
    runtime.backend.ensure_base(progress=progress)
    jobs = make_jobs(runtime)
    queue.start(jobs)
    ticker = Ticker(jobs, settings.reconcile_every_s)
    ticker.start()
    stack.callback(ticker.stop)
    stack.enter_context(_serving(server_config(create_app(settings, database, queue)), listener))
    return runtime


@contextmanager
def _serving(config: uvicorn.Config, listener: socket.socket) -> Iterator[None]:
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="web", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(10)
