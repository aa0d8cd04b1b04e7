"""An isolated partition computes on memory of both processes, and gives the same bytes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from delegraph import FailurePolicy, Interpreter, PlacementPolicy
from delegraph.plugins import installed
from support.corpus import corpus_file, needs_corpus

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@pytest.mark.repetition(1)
@needs_corpus
@pytest.mark.parametrize(
    "name", ["test_data__mobilenet_v2_1.0_224_quant", "support__mobilenet_v1_0.25_224_1_default_1"]
)
def test_a_mobilenet_by_numba_cpu_is_equal_bit_for_bit(name: str) -> None:
    if "numba_cpu" not in {offer.spec.name for offer in installed().offers()}:
        pytest.skip("delegraph-numba-cpu is not installed")
    here, there = (results(name, isolate) for isolate in ("none", "process"))
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def results(name: str, isolate: Any) -> list[Any]:
    """Return the outputs of three invokes with other inputs each."""
    found: list[Any] = []
    numbers = np.random.default_rng(0)
    with Interpreter(
        str(corpus_file(name)),
        delegates=["numba_cpu"],
        failures=FailurePolicy(isolate=isolate),
        placement=PlacementPolicy(require="full"),
    ) as interpreter:
        interpreter.allocate_tensors()
        (entry,) = interpreter.get_input_details()
        for _ in range(3):
            values = numbers.integers(0, 255, entry["shape"]).astype(entry["dtype"])
            interpreter.set_tensor(entry["index"], values)
            interpreter.invoke()
            outputs = interpreter.get_output_details()
            found += [interpreter.get_tensor(each["index"]) for each in outputs]
        assert interpreter.incidents == ()
    return found
