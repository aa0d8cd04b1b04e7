"""In the official interpreter, too, no delegate gets a node that Delegraph's kernels refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import DelegateFlags
from delegraph.native import LiteRtInterpreter
from delegraph.schema.options import AddOptions, PadOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import ByName

pytest.importorskip("ai_edge_litert", reason="the official interpreter is the host")

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
PROPAGATED = DYNAMIC | DelegateFlags.REQUIRE_PROPAGATED_SHAPES


def odd_sizes(signature: tuple[int, ...] | None = None) -> bytes:
    """Sines of x, to which a vector of another size is added, and more sines."""
    return graph_model(
        [("SIN", "x", "s"), ("ADD", "s b", "a", AddOptions()), ("SIN", "x", "y")],
        inputs="x",
        outputs="a y",
        tensors={
            "x": tensor((2,), shape_signature=signature),
            "s": tensor((2,)),
            "b": constant(np.ones(3, np.float32)),
        },
    )


def owners(interpreter: LiteRtInterpreter) -> list[str | None]:
    return [node.delegate for node in interpreter.placement.nodes]


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED])
def test_a_refused_node_stays_with_the_runtime_which_reports_it(flags: DelegateFlags) -> None:
    interpreter = LiteRtInterpreter(
        model_content=odd_sizes(), delegates=[ByName("SIN", "ADD", flags=flags)]
    )
    assert owners(interpreter) == ["by_name", None, "by_name"]
    why = interpreter.placement.nodes[1].rejections["by_name"]
    assert str(why).startswith("no delegate gets it: Node number 1 (ADD) failed to prepare")
    with pytest.raises(RuntimeError, match="failed to prepare"):
        interpreter.allocate_tensors()


def test_a_node_without_data_stays_with_the_runtime() -> None:
    model = graph_model(
        [("PAD", "z p", "w", PadOptions()), ("SIN", "x", "y")],
        inputs="x",
        outputs="w y",
        tensors={"p": constant(np.array([[1, 1]], np.int32)), "w": tensor((6,))},
    )
    interpreter = LiteRtInterpreter(
        model_content=model, delegates=[ByName("PAD", "SIN", flags=DYNAMIC)]
    )
    assert owners(interpreter) == [None, "by_name"]
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="Input tensor 1 lacks data"):
        interpreter.invoke()


def test_an_open_dimension_is_not_judged_by_its_placeholder() -> None:
    delegate = ByName("SIN", "ADD", flags=DYNAMIC)
    interpreter = LiteRtInterpreter(model_content=odd_sizes((-1,)), delegates=[delegate])
    assert owners(interpreter) == ["by_name"] * 3
    interpreter.resize_tensor_input(0, [3])
    interpreter.allocate_tensors()
    x = np.array([0.0, 0.5, 1.0], np.float32)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    result: Any = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(result, np.sin(x) + 1, rtol=1e-6)


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED])
def test_a_shape_that_does_not_fit_never_reaches_the_kernel(flags: DelegateFlags) -> None:
    delegate = ByName("SIN", "ADD", flags=flags)
    interpreter = LiteRtInterpreter(model_content=odd_sizes((-1,)), delegates=[delegate])
    interpreter.resize_tensor_input(0, [5])
    with pytest.raises(RuntimeError, match=r"Node number 1 \(ADD\) failed to prepare"):
        interpreter.allocate_tensors()
    assert "prepare" not in delegate.calls
