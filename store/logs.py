"""Structured logs of one process: readable lines, or JSON for a collector, scrubbed of secrets either way."""

import logging
import re
import sys
from typing import Any

import structlog

from store.scrub import register_secret, scrub, scrub_high_entropy, scrub_json
from store.settings import Settings

# Controls, line separators, and the marks that turn the direction of text around.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_OF_MANY_LINES = ("exception", "stack")


def configure_logging(settings: Settings) -> None:
    """Send structlog's and the standard library's records to stderr in one form. May be called again."""
    register_secret(settings.secret("github_private_key"))
    register_secret(settings.secret("github_webhook_secret"))
    register_secret(settings.secret("github_client_secret"))
    register_secret(settings.secret("dashboard_secret"))
    scrub_high_entropy(settings.scrub_high_entropy)
    level = getattr(logging, settings.log_level.upper())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        scrub_event,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    pre_render: list[Any] = [] if settings.log_json else [one_line]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _ScrubbingFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *pre_render, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("faiss", "httpx", "httpcore", "urllib3", "LiteLLM", "docker", "github", "alembic"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))


def scrub_event(_logger: object, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """A structlog processor: scrub every value of a record, whatever its depth or type."""
    return {
        # `_record` and its like belong to structlog's own later steps.
        key: value if key.startswith("_") else _scrubbed(value)
        for key, value in event.items()
    }


def one_line(_logger: object, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """A structlog processor: nothing that a stranger wrote passes for a record's line or steers a terminal."""
    return {key: _safe(key, value) if isinstance(value, str) else value for key, value in event.items()}


def _safe(key: str, value: str) -> str:
    if key not in _OF_MANY_LINES:
        return _UNPRINTABLE.sub(_escaped, value)
    # An error may quote what strangers wrote: its lines stand in, as no record's do.
    return "\n".join(f"  {_UNPRINTABLE.sub(_escaped, line)}" for line in value.split("\n"))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _scrubbed(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | bytes | dict | list | tuple | set | frozenset):
        return scrub_json(value)
    return scrub(repr(value))


class _ScrubbingFormatter(structlog.stdlib.ProcessorFormatter):
    """The last look: a traceback or an odd object's repr is scrubbed once it is text."""

    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record))
