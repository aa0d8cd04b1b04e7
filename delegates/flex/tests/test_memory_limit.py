"""The NumPy executor asks for memory before it takes it, and obeys the interpreter's limit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flex_cases
from delegraph import Interpreter, Limits, TensorType
from delegraph.errors import DelegateNodeError, OperatorError
from delegraph.schema import tables
from delegraph_flex.data_types import DataType
from delegraph_flex.memory import SMALL
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from flex_models import flex_model

HERE = Path(__file__).parent
F32, I32, STRING = DataType.FLOAT32, DataType.INT32, DataType.STRING
KILOBYTE = 1 << 10


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def filled(limit: int | None) -> Interpreter:
    """Return an interpreter that fills a large tensor, and outputs only its shape."""
    shape = tables.Tensor(shape=(1,), type=TensorType.INT32, has_rank=True)
    nodes = [
        ("FlexFill", "dims value", "y", {"T": F32, "index_type": I32}),
        ("FlexShape", "y", "shape", {"T": F32, "out_type": I32}),
    ]
    value = tables.Tensor(shape=(), type=TensorType.FLOAT32, has_rank=True)
    model = flex_model(
        nodes,
        inputs="dims value",
        outputs="shape",
        tensors={"dims": shape, "shape": shape, "value": value},
    )
    delegates: Any = {"flex": {"executor": "numpy"}}
    interpreter = Interpreter(model_content=model, delegates=delegates, limits=Limits(memory=limit))
    interpreter.allocate_tensors()
    return interpreter


def fill(interpreter: Interpreter, count: int) -> list[int]:
    dims, value = (entry["index"] for entry in interpreter.get_input_details())
    interpreter.set_tensor(dims, ints(count))
    interpreter.set_tensor(value, np.float32(1))
    interpreter.invoke()
    found: list[int] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()
    return found


def test_a_fill_of_half_a_billion_is_refused_by_node_size_and_limit() -> None:
    words = (
        r"node 0 \(FlexFill\): an array of shape \[500000000\] needs 2000000000 bytes, more than "
        r"the limit of 268435456 bytes; Interpreter\(limits=Limits\(memory=\.\.\.\)\) sets another"
    )
    with pytest.raises(DelegateNodeError, match=words):
        fill(filled(None), 500_000_000)


def test_the_limit_that_the_user_sets_holds_between_operators() -> None:
    interpreter = filled(4000)
    assert fill(interpreter, 1000) == [1000]
    with pytest.raises(
        DelegateNodeError, match="needs 4004 bytes, more than the limit of 4000 bytes"
    ):
        fill(interpreter, 1001)
    assert fill(interpreter, 1000) == [1000]


TEXT = flex_cases.strings([b"x" * KILOBYTE])
REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("AsString", (ints(1),), {"T": I32, "width": 2_000_000_000}),
    ("AsString", (np.float32([1]),), {"T": F32, "precision": 2_000_000_000}),
    ("StringJoin", (TEXT, TEXT, TEXT), {"N": 3}),
    ("StringJoin", (TEXT, TEXT), {"N": 2, "separator": b"-" * KILOBYTE}),
    ("ReduceJoin", (TEXT.repeat(3), ints(0)), {}),
    ("Add", (TEXT.repeat(2), TEXT), {"T": STRING}),
    ("StaticRegexReplace", (TEXT,), {"pattern": b"x", "rewrite": rb"\0\0\0"}),
    ("OneHot", (np.zeros(200, np.int32), ints(20)[0], np.float32(1), np.float32(0)), {"T": F32}),
    ("GatherV2", (np.zeros((2, 1000), np.float32), np.zeros(99, np.int32), ints(0)[0]), {}),
    ("TensorListReserve", (ints(-1)[0], ints(400)[0]), {"element_dtype": F32}),
]


@pytest.mark.parametrize(("op", "inputs", "attrs"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_is_larger_than_its_inputs_is_asked_for(
    op: str, inputs: tuple[Any, ...], attrs: dict[str, Any]
) -> None:
    if "Regex" in op:
        pytest.importorskip("re2")
    with (
        flex_cases.memory_limit(3000),
        pytest.raises(OperatorError, match="more than the limit of 3000 bytes"),
    ):
        flex_cases.run(flex_cases.one(op, *inputs, **attrs), NumpyExecutor())


def test_what_broadcasts_is_asked_for_unless_it_is_small() -> None:
    with flex_cases.memory_limit(8):
        for count, is_small in ((64, True), (SMALL, False)):
            x, y = np.ones((count, 1), np.float32), np.ones((1, 2), np.float32)
            case = flex_cases.one("Mul", x, y, T=F32)
            if is_small:
                assert flex_cases.run(case, NumpyExecutor())[0].shape == (count, 2)
            else:
                with pytest.raises(OperatorError, match=f"needs {8 * count} bytes"):
                    flex_cases.run(case, NumpyExecutor())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory so")
@pytest.mark.repetition(1)
@pytest.mark.parametrize("part", range(4))
def test_no_operator_takes_memory_in_sizes_of_the_models_choosing(part: int) -> None:
    run = [sys.executable, str(HERE / "hostile_sizes.py"), str(part), "4"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    *taken, last = done.stdout.splitlines() or [""]
    assert (done.returncode, taken) == (0, []), done.stderr
    assert "operators" in last
