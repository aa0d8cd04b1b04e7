"""A request is a span of the trace that its headers name."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

if importlib.util.find_spec("opentelemetry") is None:
    pytest.skip("tracing is tested by make test-scale-serve", allow_module_level=True)
pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from delegraph.scale.serving.endpoints.tracing import traced

TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_the_trace_of_the_client_goes_on() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    parent = f"00-{TRACE}-b7ad6b7169203331-01".encode()
    inside: list[Any] = []
    for headers in ({b"traceparent": parent}, {b"traceparent": b"nonsense\xff"}, {}):
        with traced(headers, "ModelInfer"):
            inside.append(trace.get_current_span().get_span_context().trace_id)
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["ModelInfer"] * 3
    assert [f"{found:032x}" == TRACE for found in inside] == [True, False, False]
    assert spans[0].parent is not None
    assert f"{spans[0].parent.span_id:016x}" == "b7ad6b7169203331"
