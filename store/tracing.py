"""Traces that follow one delivery through all processes, for any OpenTelemetry collector (extra `otel`).

No context travels through the queue, which may lose its messages: the trace's id is made from the delivery's own
(`X-GitHub-Delivery`), so that every process knows it from the database. Without `trace_endpoint` nothing is loaded.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from store.errors import ConfigurationError
from store.settings import Settings

_preset: ContextVar[tuple[int, int] | None] = ContextVar("preset", default=None)
_tracer: list[Any] = []
_NOTHING = nullcontext()


def configure_tracing(settings: Settings, process: str) -> None:
    """Send this process's spans to the settings' endpoint. `process` names it: web or worker.

    Raises:
        ConfigurationError: an endpoint is set and the extra `otel` is not installed.
    """
    if not settings.trace_endpoint:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            "ACROUTER_TRACE_ENDPOINT is set and OpenTelemetry is not installed. Run in acrouter's folder: "
            ".venv/bin/pip install '.[otel]'."
        ) from error
    use_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.trace_endpoint)), process)


def use_processor(processor: Any, process: str) -> None:
    """Hand this process's spans to a span processor."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create({"service.name": "acrouter", "service.instance.id": process})
    provider = TracerProvider(resource=resource, id_generator=_ids())
    provider.add_span_processor(processor)
    _tracer[:] = [provider.get_tracer("acrouter")]


def root_span(name: str, delivery_guid: str, **attributes: str | int | float) -> AbstractContextManager[None]:
    """Record the span with which a delivery's trace begins."""
    return _recorded(name, delivery_guid, attributes) if _tracer else _NOTHING


@contextmanager
def _recorded(name: str, delivery_guid: str, attributes: Mapping[str, str | int | float]) -> Iterator[None]:
    from opentelemetry.context import Context

    token = _preset.set(ids_of(delivery_guid))
    try:
        with _tracer[0].start_as_current_span(name, context=Context(), attributes=attributes):
            _preset.set(None)
            yield
    finally:
        _preset.reset(token)


@contextmanager
def span(name: str, delivery_guid: str | None = None, **attributes: str | int | float) -> Iterator[None]:
    """Record a span: below the delivery's first one where a guid is given, else below the span that is open here."""
    if not _tracer:
        yield
        return
    with _tracer[0].start_as_current_span(name, context=_below(delivery_guid), attributes=attributes):
        yield


def ids_of(delivery_guid: str) -> tuple[int, int]:
    """Return the trace's id (128 bits) and its first span's (64 bits) for a delivery; neither is 0."""
    hashed = hashlib.sha256(delivery_guid.encode()).digest()
    return int.from_bytes(hashed[:16], "big") or 1, int.from_bytes(hashed[16:24], "big") or 1


def _below(delivery_guid: str | None) -> Any:
    if not delivery_guid:
        return None
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    trace_id, span_id = ids_of(delivery_guid)
    parent = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(parent))


def _ids() -> Any:
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class PresetIds(RandomIdGenerator):
        """Random ids, but for the first span of a delivery."""

        def generate_trace_id(self) -> int:
            preset = _preset.get()
            return preset[0] if preset else super().generate_trace_id()

        def generate_span_id(self) -> int:
            preset = _preset.get()
            return preset[1] if preset else super().generate_span_id()

    return PresetIds()
