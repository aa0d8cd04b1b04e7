"""What makes outputs differ: a wrong node, or roundings that right nodes magnify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.delegation.tolerance import Tolerance
from delegraph.testing import graph_model
from delegraph.tools import Setup, diff
from delegraph.tools.differing.cause import Cause, cause_of, has_bisectable
from delegraph.tools.differing.numerics_profile import rounding
from support.layer_models import RUNTIMES, WrongProduct, add, fed, file, mul, setup_of
from support.quantizing_chain import MODEL, X
from support.seeded_faults import SoundKernel, with_kernel


class LastBit(SoundKernel):
    """Gives sums in which the last bit is another one."""

    def result(self, step: Any, registration: Any, a: Any, b: Any) -> Any:
        y = super().result(step, registration, a, b)
        return np.nextafter(y, np.float32(-np.inf)) if registration.name == "ADD" else y


class WrongTogether(SoundKernel):
    """Is wrong where it computes several nodes."""

    def result(self, step: Any, registration: Any, a: Any, b: Any) -> Any:
        return super().result(step, registration, a, b) + np.float32(len(self.nodes) > 1)


def found_cause(model: str, runtime: str, delegate: Any, values: Any = X) -> Cause | None:
    np.save(Path(model).parent / "x.npy", values)
    inputs = fed(values=(f"x={Path(model).parent / 'x.npy'}",))
    setup = setup_of(model, runtime, delegate)
    found = diff(setup, inputs=inputs, runs=1, warmup=0, tolerance=Tolerance(absolute=1e-3))
    return cause_of(found, inputs=inputs)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_last_bit_that_a_step_magnifies_is_no_wrong_node(tmp_path: Path, runtime: str) -> None:
    cause = found_cause(file(tmp_path, MODEL), runtime, with_kernel(LastBit)())
    assert cause is not None
    assert cause.kind == "magnified roundings"
    assert cause.layer is not None
    assert str(cause) == (
        "roundings were magnified: each node is right on the reference's inputs; of roundings "
        "before it node 1 (QUANTIZE) makes more: 4 of 4 elements of 'q' differ, by up to 1"
    )
    assert (cause.to_json()["node"], cause.to_json()["operator"]) == (1, "QUANTIZE")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_first_node_that_is_wrong_on_equal_inputs_is_named(chain: str, runtime: str) -> None:
    cause = found_cause(chain, runtime, with_kernel(WrongProduct)())
    assert cause is not None
    assert cause.kind == "wrong node"
    assert str(cause) == (
        "node 1 (MUL) is wrong: on the reference's inputs 1 of 4 elements of 'b' differ, by up to 1"
    )


def test_nodes_that_are_right_one_by_one_are_told(chain: str) -> None:
    cause = found_cause(chain, "delegraph", with_kernel(WrongTogether)())
    assert cause is not None
    assert cause.kind == "nodes together"
    assert "--inner exposed" in str(cause)


def test_where_nothing_is_outside_there_is_no_cause(chain: str) -> None:
    assert found_cause(chain, "delegraph", with_kernel(SoundKernel)()) is None


def test_a_tolerance_below_roundings_is_no_fault_of_nodes(tmp_path: Path) -> None:
    model = file(tmp_path, graph_model([add("x x", "y")], inputs="x", outputs="y"))
    setup = setup_of(model, "delegraph", with_kernel(LastBit)())
    found = diff(setup, inputs=fed(), runs=1, tolerance=Tolerance(absolute=0))
    cause = cause_of(found, inputs=fed())
    assert cause == Cause("roundings")
    assert str(cause) == (
        "roundings alone: each node and the outputs are within the numerics profile"
    )


def test_bisect_is_no_advice_where_only_xnnpack_has_nodes() -> None:
    assert "or --bisect tells more" in str(Cause("nodes together"))
    assert "--bisect" not in str(Cause("nodes together", can_bisect=False))


def test_xnnpack_cannot_be_bisected(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    model = file(tmp_path, graph_model([mul("x x", "y")], inputs="x", outputs="y"))
    found = diff(Setup(model, "litert"), inputs=fed(), runs=1)
    assert found.test_placement.partitions
    assert not has_bisectable(found.test_placement)


def test_a_wrong_node_that_feeds_no_failing_output_is_not_blamed(tmp_path: Path) -> None:
    nodes = [mul("x x", "other"), add("x x", "a"), mul("a x", "y")]
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="other y"))
    setup = setup_of(model, "delegraph", with_kernel(WrongProduct)())
    loose, strict = Tolerance(absolute=10), Tolerance(absolute=1e-3)
    for name, node in (("other", 0), ("y", 2)):
        limits = {"": loose, name: strict}
        found = diff(setup, inputs=fed(), runs=1, warmup=0, tolerance=limits)
        cause = cause_of(found, inputs=fed())
        assert cause is not None
        assert cause.layer is not None
        assert (cause.kind, cause.layer.node) == ("wrong node", node)


_HALVES: Any = {"dtype": np.int8, "quantization_parameters": {"scales": [0.5]}}


@pytest.mark.parametrize(
    ("values", "details", "test_details", "absolute"),
    [
        (np.float32([-50, np.inf, 1]), {}, {}, 5e-3),
        (np.float16([2]), {}, {}, 2e-2),
        (np.int8([3]), _HALVES, _HALVES, 1),
        (np.int8([3]), _HALVES, {}, 1),
        (np.float32([3]), {}, _HALVES, 0.5),
        (np.float32([9000]), {}, _HALVES, 0.5),
        (np.float32([3]), {}, _HALVES | {"dtype": np.float32}, 3e-4),
        (np.int32([3]), {"quantization_parameters": {"scales": []}}, {}, 0),
        (np.array([True]), {}, {}, 0),
    ],
)
def test_how_far_roundings_go(
    values: Any, details: Any, test_details: Any, absolute: float
) -> None:
    assert rounding(values, details, test_details).absolute == pytest.approx(absolute)
