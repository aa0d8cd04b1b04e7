"""Continues the trace context of requests, and passes it on, if OpenTelemetry is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _telemetry() -> Any:
    """Return OpenTelemetry's tracer and propagation; None if it is not installed."""
    try:
        from opentelemetry import propagate, trace
    except ImportError:
        return None
    return trace.get_tracer("delegraph"), propagate


@contextmanager
def traced(headers: Mapping[bytes, bytes], name: str) -> Iterator[None]:
    """Run the block in a span of the trace that the request's headers name.

    *headers* maps lower-case names to values.
    """
    telemetry = _telemetry()
    if telemetry is None:
        yield
        return
    tracer, propagate = telemetry
    carrier = {key.decode("latin1"): value.decode("latin1") for key, value in headers.items()}
    with tracer.start_as_current_span(name, context=propagate.extract(carrier)):
        yield
