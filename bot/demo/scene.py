"""What acrouter works with where it needs neither GitHub nor a key: a local GitHub, the models, and its settings."""

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.demo.hub.server import LocalHub
from bot.demo.materialise import BugRepository
from bot.demo.paid import write_paid_models_file
from bot.demo.scripted import ScriptedEndpoint, write_models_file
from bot.demo.throwaway import free_port, make_private_key
from store.settings import PREFIX

APP_ID = 1
_DATABASE_URL, _REDIS_URL = f"{PREFIX}DATABASE_URL", f"{PREFIX}REDIS_URL"


@dataclass(frozen=True)
class Scene:
    """Everything but acrouter itself."""

    github: LocalHub
    endpoint: ScriptedEndpoint | None
    """The scripted models; None where a paid one works."""
    settings: Mapping[str, object]
    """What makes acrouter work with them, as `load_settings` takes it."""
    database: Path
    """The file that acrouter's database is in."""


@contextmanager
def set_scene(
    state: Path, repositories: Sequence[BugRepository], *, web_url: str, data_dir: Path, paid_model: str = ""
) -> Iterator[Scene]:
    """Start what acrouter works with, which listens at `web_url`, with an empty memory, and stop it at the end.

    `state` is emptied: the database lies there, and the pool.

    Raises:
        ConfigurationError: the paid model is unknown, has no price, or its key is not set.
    """
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    with ExitStack() as stack:
        models_file = state / "models.yaml"
        endpoint = None
        if paid_model:
            write_paid_models_file(models_file, paid_model)
        else:
            endpoint = stack.enter_context(_scripted_models(repositories, state))
            write_models_file(models_file, api_base=endpoint.api_base, api_key_file=state / "scripted-key")
        secret, private_key = secrets.token_urlsafe(32), make_private_key()
        hub = LocalHub(free_port(), f"{web_url}/webhooks/github", secret, APP_ID, private_key)
        hub.start()
        stack.callback(hub.stop)
        database = (state / "acrouter.sqlite3").absolute()
        settings = {
            "data_dir": data_dir,
            # By the names of the environment: nobody's real database and broker may be meant.
            _DATABASE_URL: f"sqlite:///{database}",
            _REDIS_URL: "",
            "models_file": models_file,
            "github_app_id": APP_ID,
            "github_private_key": private_key,
            "github_webhook_secret": secret,
            "github_api_url": hub.base_url,
            "github_web_url": hub.base_url,
            "github_write_pause_s": 0.0,
            "onboarding": "off",
            "task_budget_usd": 5.0,
            "log_level": "error",
        }
        yield Scene(hub, endpoint, settings, database)


def as_environment(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings as the environment of a process that is to have them."""
    return {
        name if name.startswith(PREFIX) else f"{PREFIX}{name.upper()}": str(value) for name, value in settings.items()
    }


@contextmanager
def _scripted_models(repositories: Sequence[BugRepository], state: Path) -> Iterator[ScriptedEndpoint]:
    key = "scripted-" + secrets.token_urlsafe(16)
    key_file = state / "scripted-key"
    key_file.touch(mode=0o600)
    key_file.write_text(key, encoding="utf-8")
    with ScriptedEndpoint(repositories, api_key=key) as endpoint:
        yield endpoint
