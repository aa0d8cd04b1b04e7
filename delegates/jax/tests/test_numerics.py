"""What rounds otherwise in the official reference kernels is computed like them, or left."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from delegraph import Interpreter
from delegraph.operators import Numerics
from delegraph.schema import options as o
from delegraph.testing import one_op_model, subgraphs_model, tensor
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions

X = tensor((2, 5), "INT8", scale=0.1)
SHARES = tensor((2, 5), "INT8", scale=1 / 256, zero_point=-128)
LOGS = tensor((2, 5), "INT8", scale=1 / 16, zero_point=127)
IMAGE, NORMAL = tensor((1, 2, 2, 6)), tensor((1, 2, 2, 6))
NEIGHBOURS = o.LocalResponseNormalizationOptions(radius=2, bias=1.0, alpha=1.0, beta=0.5)
SOFTMAX = o.SoftmaxOptions(beta=1.0)


def reasons(model: bytes, numerics: Numerics) -> str:
    """Return the reasons for rejecting the first node; empty if it is taken."""
    delegates = [JaxDelegate(JaxOptions())]
    with Interpreter(
        model_content=model, experimental_delegates=delegates, numerics=numerics
    ) as interpreter:
        node = interpreter.placement.nodes[0]
        return " ".join(str(rejection) for rejection in node.rejections.values())


@pytest.mark.parametrize(
    "model",
    [
        one_op_model("SOFTMAX", [X], [SHARES], SOFTMAX),
        one_op_model("LOG_SOFTMAX", [X], [LOGS]),
        one_op_model("LOCAL_RESPONSE_NORMALIZATION", [IMAGE], [NORMAL], NEIGHBOURS),
    ],
    ids=["SOFTMAX", "LOG_SOFTMAX", "LOCAL_RESPONSE_NORMALIZATION"],
)
def test_what_only_the_builtin_kernels_compute_is_left(model: bytes) -> None:
    assert reasons(model, "reference") == "numerics: is reference, needs builtin"
    assert not reasons(model, "builtin")


def test_they_are_left_inside_of_what_calls_them() -> None:
    tensors = {"x": X, "y": SHARES}
    options = o.StableHLOCompositeOptions(name="shares", decomposition_subgraph_index=1)
    caller = ([("STABLEHLO_COMPOSITE", "x", "y", options)], "x", "y", tensors)
    called = ([("SOFTMAX", "x", "y", SOFTMAX)], "x", "y", tensors)
    model = subgraphs_model([caller, called])

    assert "(SOFTMAX) of subgraph 1: numerics" in reasons(model, "reference")
    assert not reasons(model, "builtin")
