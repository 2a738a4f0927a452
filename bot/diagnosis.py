"""The checks of `acrouter doctor`. Each returns findings and raises nothing: one broken need hides no other."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx
import redis
from sqlmodel import select

from bot.assembly import make_backend
from bot.dashboard.diagnosis import check_dashboard
from bot.dashboard.digest import parse_place
from bot.github.app_key import app_auth
from bot.github_app.checking import compare
from bot.github_app.findings import Finding
from bot.router_diagnosis import check_encoder, check_models, check_voters
from routing.pool import load_pool
from store import migrations
from store.data_dir import make_data_dir
from store.database import Database
from store.errors import AcrouterError, ConfigurationError
from store.scrub import scrub
from store.settings import Settings, load_settings
from store.tables import Heartbeat
from store.types import utc_now

# GitHub refuses a JWT issued in its future; it allows a minute of drift
# (https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app).
_CLOCK_TOLERANCE = timedelta(seconds=30)


def diagnose(*, offline: bool = False) -> list[Finding]:
    """Return what every check found, in the order in which one would mend things."""
    try:
        settings = load_settings()
    except ConfigurationError as error:
        return [Finding("wrong", "settings", str(error), "Correct the environment or the .env file.")]
    checks: list[tuple[str, Callable[[Settings], Iterator[Finding]], str]] = [
        ("data folder", _data_dir, "Set ACROUTER_DATA_DIR to a folder that can be written."),
        ("database", _database, "Start the database or correct DATABASE_URL."),
        ("broker", _broker, "Start Redis or correct REDIS_URL."),
        ("sandbox", _sandbox, "docs/setup.md says what a sandbox needs."),
        ("models", _models, "Correct the pool's file; ACROUTER_MODELS_FILE says where it is."),
        ("encoder", check_encoder, "Correct ACROUTER_ENCODER, or leave it out."),
        ("voters", check_voters, "Correct ACROUTER_VOTER_WEIGHTS and the voters' own settings."),
        ("digest", _digest, "Correct ACROUTER_DIGEST_ISSUE, or leave it out."),
        ("dashboard", check_dashboard, "docs/dashboard.md says how to let a team in."),
        ("GitHub App", _credentials if offline else _github, "docs/setup.md shows where the credentials come from."),
    ]
    return [finding for what, check, advice in checks for finding in _guarded(what, check, settings, advice)]


def _guarded(
    what: str, check: Callable[[Settings], Iterator[Finding]], settings: Settings, advice: str
) -> list[Finding]:
    """What was found before a check broke stays."""
    found: list[Finding] = []
    try:
        found.extend(check(settings))
    except AcrouterError as error:
        found.append(Finding("wrong", what, str(error), advice))
    except Exception as error:  # noqa: BLE001  (a diagnosis reports whatever it meets)
        found.append(Finding("wrong", what, scrub(f"{type(error).__name__}: {error}"), advice))
    return found


def _data_dir(settings: Settings) -> Iterator[Finding]:
    make_data_dir(settings.data_dir)
    if os.access(settings.data_dir, os.W_OK):
        yield Finding("ok", "data folder", str(settings.data_dir.absolute()))
    else:
        yield Finding("wrong", "data folder", f"{settings.data_dir} cannot be written.", "Set ACROUTER_DATA_DIR.")


def _database(settings: Settings) -> Iterator[Finding]:
    database = Database(settings.resolved_database_url)
    kind = "SQLite" if database.is_sqlite else "Postgres"
    current, newest = migrations.pending(database)
    try:
        migrations.require_known(database)
    except ConfigurationError as error:
        yield Finding("wrong", "database", str(error), "docs/operations.md says how to go back.")
        database.dispose()
        return
    if current == newest:
        yield Finding("ok", "database", f"{kind}, revision {current}")
    else:
        yield Finding("warning", "database", f"{kind} at revision {current or 'none'}", "Run `acrouter migrate`.")
    if not settings.embedded and database.is_sqlite:
        yield Finding(
            "wrong", "database", "REDIS_URL is set, but the database is a SQLite file.", "Set DATABASE_URL to Postgres."
        )
    if current == newest and not settings.embedded:
        with database.reading() as session:
            since = utc_now() - timedelta(seconds=4 * settings.reconcile_every_s)
            alive = [row.name for row in session.exec(select(Heartbeat)).all() if row.seen_at > since]
        if alive:
            yield Finding("ok", "workers", ", ".join(alive))
        else:
            yield Finding(
                "warning", "workers", "none has been seen lately", "Run `acrouter worker` and `acrouter beat`."
            )
    database.dispose()


def _broker(settings: Settings) -> Iterator[Finding]:
    if settings.embedded:
        yield Finding("ok", "broker", "none: the workers are threads of `acrouter up`")
        return
    client = redis.Redis.from_url(settings.redis_url, socket_connect_timeout=5)
    try:
        client.ping()
    except redis.RedisError as error:
        yield Finding("wrong", "broker", str(error), "Start Redis or correct REDIS_URL.")
    else:
        yield Finding("ok", "broker", "Redis answers")


def _sandbox(settings: Settings) -> Iterator[Finding]:
    backend = make_backend(settings)
    level: Literal["ok", "warning"] = "ok" if backend.name == "docker" else "warning"
    advice = "" if backend.name == "docker" else "Install Docker for the stronger sandbox."
    yield Finding(level, "sandbox", backend.describe(), advice)
    yield Finding("ok", "base image", backend.ensure_base())


def _judge(settings: Settings) -> Iterator[Finding]:
    if settings.judge_model:
        level: Literal["ok", "wrong"]
        level = "ok" if settings.judge_model in load_pool(settings.models_file).names else "wrong"
        told = f"{settings.judge_model} is {'' if level == 'ok' else 'not '}in the pool"
        yield Finding(level, "judge", told, "" if level == "ok" else "Correct ACROUTER_JUDGE_MODEL, or leave it out.")


def _models(settings: Settings) -> Iterator[Finding]:
    yield from check_models(settings)
    yield from _judge(settings)


def _digest(settings: Settings) -> Iterator[Finding]:
    if settings.digest_issue:
        name, number = parse_place(settings.digest_issue)
        yield Finding("ok", "digest", f"each week on {name}#{number}" if number else f"a new issue of {name} each week")


def _addresses(settings: Settings) -> Iterator[Finding]:
    """Of GitHub; nothing is said of those that can be one."""
    for name, url in (
        ("ACROUTER_GITHUB_API_URL", settings.github_api_url),
        ("ACROUTER_GITHUB_WEB_URL", settings.github_web_url),
    ):
        try:
            sound = httpx.URL(url).scheme in ("http", "https") and bool(httpx.URL(url).host)
        except httpx.InvalidURL:
            sound = False
        if not sound:
            yield Finding("wrong", "GitHub", f"{name} is no address", "Write https://HOST/..., or leave it out.")


def _credentials(settings: Settings) -> Iterator[Finding]:
    yield from _addresses(settings)
    advice = "docs/setup.md shows where it comes from."
    credentials: tuple[tuple[str, Callable[[], object]], ...] = (
        ("ACROUTER_GITHUB_APP_ID", lambda: settings.github_app_id),
        ("ACROUTER_GITHUB_PRIVATE_KEY", lambda: settings.secret("github_private_key")),
        ("ACROUTER_GITHUB_WEBHOOK_SECRET", lambda: settings.secret("github_webhook_secret")),
    )
    for name, value in credentials:
        try:
            there = bool(value())
        except ConfigurationError as error:
            yield Finding("wrong", "GitHub App", str(error), advice)
            continue
        if there:
            yield Finding("ok", "GitHub App", f"{name} is set")
        else:
            yield Finding("wrong", "GitHub App", f"{name} is not set", advice)


def _github(settings: Settings) -> Iterator[Finding]:
    credentials = list(_credentials(settings))
    yield from credentials
    if any(finding.level == "wrong" for finding in credentials):
        return
    try:
        token = app_auth(settings).token
    except ConfigurationError:
        advice = "Give the PEM text or file that GitHub made; docs/setup.md shows where it comes from."
        yield Finding("wrong", "GitHub App", "ACROUTER_GITHUB_PRIVATE_KEY is no private key", advice)
        return
    try:
        answer = _ask_as_app(settings, token, "/app")
    except httpx.TransportError as error:
        host = httpx.URL(settings.github_api_url).host
        found = scrub(f"{host} cannot be reached: {error or type(error).__name__}")
        yield Finding(
            "wrong", "GitHub App", found, "Check DNS, the firewall or the proxy (HTTPS_PROXY) of this machine."
        )
        return
    yield from _clock(answer)
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        yield Finding("wrong", "GitHub App", "GitHub refused the key", "Check the App's id, its key and this clock.")
        return
    answer.raise_for_status()
    app = answer.json()
    yield Finding("ok", "GitHub App", f"GitHub knows it as {app.get('slug') or app.get('name')}")
    yield from compare(app)
    with suppress(httpx.TransportError):  # GitHub was there a moment ago: that is what somebody wants to know
        yield from _webhooks(settings, _ask_as_app(settings, token, "/app/hook/deliveries?per_page=1"))


def _ask_as_app(settings: Settings, token: str, path: str) -> httpx.Response:
    return httpx.get(
        f"{settings.github_api_url.rstrip('/')}{path}",
        headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
        timeout=10,
    )


def _webhooks(settings: Settings, answer: httpx.Response) -> Iterator[Finding]:
    """Whether the newest webhook arrived; nothing is said where GitHub has sent none or does not tell."""
    newest = answer.json()[:1] if answer.is_success else []
    for delivery in newest:
        status, when = int(delivery["status_code"]), delivery["delivered_at"]
        later = f"Until then acrouter asks for what did not arrive, every {settings.sweep_every_s:g} s."
        if httpx.codes.is_success(status):
            yield Finding("ok", "webhooks", f"the newest one arrived ({when})")
        elif status == httpx.codes.UNAUTHORIZED:
            yield Finding(
                "warning",
                "webhooks",
                f"acrouter refused the newest one ({when}): its secret is not that of the App.",
                f"Give ACROUTER_GITHUB_WEBHOOK_SECRET or _FILE the App's secret and restart. {later}",
            )
        else:
            told = f"HTTP {status}" if status else str(delivery["status"])
            yield Finding(
                "warning",
                "webhooks",
                f"the newest one did not arrive ({when}): {told}",
                f"Look whether acrouter runs and the App's webhook URL leads to it. {later}",
            )


def _clock(answer: httpx.Response) -> Iterator[Finding]:
    if "date" not in answer.headers:
        return
    drift = datetime.now(UTC) - parsedate_to_datetime(answer.headers["date"])
    if abs(drift) <= _CLOCK_TOLERANCE:
        yield Finding("ok", "clock", "agrees with GitHub's")
    else:
        yield Finding(
            "wrong", "clock", f"{abs(drift.total_seconds()):.0f} s away from GitHub's", "Synchronise it (NTP)."
        )
