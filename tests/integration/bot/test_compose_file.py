"""`docker-compose.yml` after docs/setup.md: each container finds what its settings name, and no more is open."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values

from bot.assembly import require_github
from bot.github_app import credentials
from bot.github_app.place import Place
from store.settings import Settings, load_settings
from tests.support.github.server import new_private_key

ROOT = Path(__file__).resolve().parents[3]
ACROUTER = ("web", "worker", "beat")


@dataclass(frozen=True)
class Compose:
    """The file as Compose reads it: with the values of `.env`, and merged as YAML says."""

    parsed: dict[str, Any]
    env: dict[str, str]

    def service(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.parsed["services"][name]
        return found

    def environment(self, name: str) -> dict[str, str]:
        """What stands under `environment:` goes before the lines of `.env`."""
        return {**self.env, **self.service(name)["environment"]}

    def mounts(self, name: str) -> dict[str, str]:
        """Return what lies behind each path inside."""
        parts = [volume.split(":") for volume in self.service(name).get("volumes", ())]
        volumes = {inside: source for source, inside, *_ in parts}
        secrets = {f"/run/secrets/{secret}": self._secret(secret) for secret in self.service(name).get("secrets", ())}
        return volumes | secrets

    def _secret(self, name: str) -> str:
        return str(self.parsed["secrets"][name]["file"])


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Compose:
    """Beside a `.env` as `github-app create` and docs/setup.md make it."""
    folder = tmp_path_factory.mktemp("installation")
    made = credentials.Credentials(5, "acrouter", "https://github.example/apps/acrouter", new_private_key(), "s" * 40)
    lines = credentials.keep(made, folder / ".acrouter", Place.of("https://github.com"), "https://acrouter.example.com")
    written = folder / ".env"
    written.write_text("".join(f"{name}={value}\n" for name, value in {**lines, "POSTGRES_PASSWORD": "x"}.items()))
    env = {name: value or "" for name, value in dotenv_values(written).items()}

    def filled_in(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        assert name in env or default is not None, f"{name} is neither set nor has it a default"
        return env.get(name) or str(default)

    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    text = re.sub(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)?\}", filled_in, text)
    return Compose(yaml.safe_load(text), env)


def settings_inside(compose: Compose, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.chdir(tmp_path)  # `.dockerignore` keeps `.env` out of the image
    for key, value in compose.environment(name).items():
        monkeypatch.setenv(key, value)
    return load_settings()


@pytest.mark.parametrize("name", ACROUTER)
def test_a_container_finds_the_apps_credentials(
    compose: Compose, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = settings_inside(compose, name, monkeypatch, tmp_path)
    mounts = compose.mounts(name)
    inside = (settings.github_private_key_file, settings.github_webhook_secret_file)
    behind = [Path(mounts[str(path)]) for path in inside]
    require_github(
        settings.model_copy(
            update=dict(zip(("github_private_key_file", "github_webhook_secret_file"), behind, strict=True))
        )
    )
    assert all(path.is_file() for path in behind)
    assert mounts["/app/models.yaml"] == "./models.yaml"


@pytest.mark.parametrize("name", ["web", "worker"])
def test_what_a_container_keeps_outlives_it(
    compose: Compose, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = settings_inside(compose, name, monkeypatch, tmp_path)
    assert compose.mounts(name)[str(settings.data_dir)] in compose.parsed["volumes"]


def test_only_the_worker_gets_the_models_keys_and_the_image_gets_none(compose: Compose) -> None:
    keys = {"path": "keys.env", "required": False}
    assert compose.service("worker")["env_file"] == [".env", keys]
    assert [compose.service(name)["env_file"] for name in ("web", "beat")] == [".env", ".env"]
    for ignored in (".dockerignore", ".gitignore"):
        lines = (ROOT / ignored).read_text(encoding="utf-8").splitlines()
        assert {".env", "keys.env"} <= set(lines), ignored


def test_no_port_is_open_beyond_this_machine(compose: Compose) -> None:
    ports = [port for service in compose.parsed["services"].values() for port in service.get("ports", ())]
    assert "127.0.0.1:8080:8080" in ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
