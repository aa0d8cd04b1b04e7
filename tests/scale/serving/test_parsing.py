"""Large JSON is parsed by a child process, with the same result and the same refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.parsing import LARGE, RequestReader
from delegraph.scale.serving.refusals import Kind, Refusal

LIMITS = Limits(json_values=200_000)


def run(test: Callable[[RequestReader], Awaitable[Any]], limits: Limits = LIMITS) -> Any:
    reader = RequestReader(limits)
    try:
        return asyncio.run(test(reader))
    finally:
        reader.close()


def asked(values: list[Any], datatype: str = "FP32") -> bytes:
    x = {"name": "x", "datatype": datatype, "shape": [len(values)], "data": values}
    body = json.dumps({"id": "7", "inputs": [x]}).encode()
    assert len(body) > LARGE
    return body


@pytest.mark.parametrize(
    ("datatype", "values"),
    [("FP32", [n / 8 for n in range(50_000)]), ("BYTES", [f"text {n}" for n in range(50_000)])],
)
def test_large_requests_are_as_small_ones(datatype: str, values: list[Any]) -> None:
    request = run(lambda reader: reader.rest(asked(values, datatype), None))
    assert request.id == "7"
    assert request.inputs["x"].datatype == datatype
    assert request.inputs["x"].values.tolist() == values


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (asked([1.5] * 50_000, "INT8"), Kind.INVALID, "input 'x' is INT8 and has 1.5"),
        (asked([1] * 200_000), Kind.TOO_LARGE, "200009 values, expected at most 200000"),
        (b"[" * LARGE, Kind.INVALID, "has 131072 levels"),
    ],
)
def test_refusals_come_back(body: bytes, kind: Kind, message: str) -> None:
    with pytest.raises(Refusal, match=message) as caught:
        run(lambda reader: reader.rest(body, None))
    assert caught.value.kind is kind


def test_binary_tensors_are_views_of_the_body() -> None:
    values = np.arange(100_000, dtype=np.float32)
    x = {"name": "x", "datatype": "FP32", "shape": [100_000]}
    x["parameters"] = {"binary_data_size": values.nbytes}  # type: ignore[assignment]
    text = json.dumps({"inputs": [x]}).encode()
    body = bytearray(text + values.tobytes())
    found = run(lambda reader: reader.rest(body, len(text))).inputs["x"].values
    np.testing.assert_array_equal(found, values)
    assert np.shares_memory(found, np.frombuffer(body, np.uint8))


def test_a_request_that_is_given_up_disturbs_no_other() -> None:
    async def test(reader: RequestReader) -> None:
        first = asyncio.create_task(reader.rest(asked([1.0] * 90_000), None))
        await asyncio.sleep(0.05)
        first.cancel()
        for size in (50_000, 60_000):
            request = await reader.rest(asked([2.0] * size), None)
            assert request.inputs["x"].values.tolist() == [2.0] * size

    run(test)


def test_what_takes_too_long() -> None:
    with pytest.raises(Refusal, match=r"cannot be parsed: no answer after 0 s"):
        run(lambda reader: reader.rest(asked([1.0] * 90_000), None), Limits(body_seconds=0))
