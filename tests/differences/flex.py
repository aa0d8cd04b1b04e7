"""Checks of the section Flex: our NumPy executor, and TensorFlow's operators, called directly.

No package of a current TensorFlow has an interpreter that runs them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter, Limits
from delegraph.testing import TensorDef, constant, one_op_model, tensor
from delegraph.testing.outputs import outputs_of
from differences.difference import CRASHED, Sides, attempt, difference

BESIDE = "tensorflow"
LSTM = """
import ctypes, json
from contextlib import suppress
with suppress(AttributeError, OSError):
    ctypes.CDLL(None).mallopt(-6, 0x2A)  # what nobody writes is no zero
import tensorflow as tf
x, state, peep = tf.ones((3, 1, 2)), tf.ones((1, 2)), tf.ones(2)
results = tf.raw_ops.BlockLSTM(
    seq_len_max=tf.constant({count}, tf.int64), x=x, cs_prev=state, h_prev=state,
    w=tf.ones((4, 8)), wci=peep, wcf=peep, wco=peep, b=tf.ones(8),
)
print(json.dumps(results.i.numpy()[1:].ravel().tolist()))
"""

CONCAT = """
import tensorflow as tf
shape = tf.constant([1, 1 << 62], tf.int64)
none = tf.zeros((0, 2), tf.int64)
tf.raw_ops.SparseConcat(
    indices=[none] * 2, values=[tf.zeros(0)] * 2, shapes=[shape] * 2, concat_dim=1
)
print("[]")
"""


def flex(
    op: str,
    inputs: Sequence[Any],
    outputs: Sequence[TensorDef],
    memory_limit: int | None = None,
    **attrs: Any,
) -> list[NDArray[Any]]:
    """Return the NumPy executor's outputs of a Flex operator; its first input is no constant."""
    from delegraph_flex.custom_options import write_custom_options
    from delegraph_flex.node_def import NodeDef

    arrays = [np.asarray(value) for value in inputs]
    first = tensor(arrays[0].shape, constant(arrays[0]).type.name)
    model = one_op_model(
        f"Flex{op}",
        [first, *map(constant, arrays[1:])],
        outputs,
        custom_options=write_custom_options(NodeDef(op, attrs, len(arrays))),
    )
    delegates = ["flex:executor=numpy"]
    with Interpreter(
        model_content=model, delegates=delegates, limits=Limits(memory=memory_limit)
    ) as interpreter:
        return outputs_of(interpreter, arrays[:1])


def type_of(name: str) -> Any:
    """Return an element type in the form of attributes."""
    from delegraph_flex.data_types import DataType

    return DataType[name]


def in_a_child(code: str) -> Any:
    """Return the JSON that a program prints; ``"crashed"`` if its process dies."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else CRASHED


def lstm(count: int) -> Any:
    """Return the first output of a BlockLSTM of three steps, without its first step."""
    state, peep = np.ones((1, 2), np.float32), np.ones(2, np.float32)
    x, w, b = np.ones((3, 1, 2)), np.ones((4, 8)), np.ones(8)
    weights = [w.astype(np.float32), peep, peep, peep, b.astype(np.float32)]
    inputs = [np.array(count, np.int64), x.astype(np.float32), state, state, *weights]
    results = flex("BlockLSTM", inputs, [tensor((3, 1, 2)) for _ in range(7)], T=type_of("FLOAT32"))
    return results[0][1:].ravel().tolist()


@difference("flex-operators-that-reach-out", beside=BESIDE)
def _() -> Sides:
    import tensorflow as tf

    name = np.array(__file__.encode(), object)
    ours = attempt(lambda: flex("ReadFile", [name], [tensor((), "STRING")]))
    return ours, attempt(lambda: tf.raw_ops.ReadFile(filename=__file__).numpy()[:3])


@difference("flex-handles-made-of-bytes", beside=BESIDE)
def _() -> Sides:
    import tensorflow as tf

    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="somebody's")
    data = tf.raw_ops.SerializeTensor(tensor=tf.constant(1.0)).numpy()
    proto = tf.make_tensor_proto(1.0)
    proto.dtype = handle.dtype.as_datatype_enum
    proto.ClearField("float_val")
    proto.resource_handle_val.add(name="somebody's")
    out = [tensor((), "RESOURCE")]
    ours = attempt(
        lambda: flex("ParseTensor", [np.array(data, object)], out, out_type=type_of("RESOURCE"))
    )
    return ours, attempt(
        lambda: str(tf.io.parse_tensor(proto.SerializeToString(), tf.resource).dtype.name)
    )


@difference("flex-more-steps-than-a-sequence-has", beside=BESIDE)
def _() -> Sides:
    return attempt(lambda: lstm(4)), in_a_child(LSTM.format(count=4))


@difference("flex-lstm-past-its-last-step", beside=BESIDE)
def _() -> Sides:
    return lstm(1), in_a_child(LSTM.format(count=1))


@difference("flex-sparse-tensors-past-64-bits", beside=BESIDE)
def _() -> Sides:
    none, shape = np.zeros((0, 2), np.int64), np.array([1, 1 << 62])
    inputs = [*[none] * 2, *[np.zeros(0, np.float32)] * 2, *[shape] * 2]
    out = [tensor((0, 2), "INT64"), tensor((0,)), tensor((2,), "INT64")]
    attrs = {"T": type_of("FLOAT32"), "N": 2, "concat_dim": 1}
    return attempt(lambda: flex("SparseConcat", inputs, out, **attrs)), in_a_child(CONCAT)


@difference("flex-ranges-of-channels", beside=BESIDE)
def _() -> list[Sides]:
    import tensorflow as tf

    x, low, high = np.float32([[1, 2], [-3, 4]]), np.float32([-1, -2]), np.float32([1, 2])
    given = {"range_given": True, "axis": 1}
    pairs = []
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
        attrs = {"T": type_of("FLOAT32"), **given}
        ours = attempt(lambda: flex(op, [x, low, high], [tensor((2, 2))], **attrs))  # noqa: B023
        function = getattr(tf.raw_ops, op)
        theirs = attempt(
            lambda: function(input=x, input_min=low, input_max=high, **given).numpy()  # noqa: B023
        )
        pairs.append((ours, theirs))
    return pairs


@difference("flex-memory-limit", beside=BESIDE)
def _() -> Sides:
    import tensorflow as tf

    out, attrs = [tensor((1,))], {"T": type_of("FLOAT32"), "index_type": type_of("INT32")}
    dims, value = np.int32([2000]), np.float32(1)
    return (
        attempt(lambda: flex("Fill", [dims, value], out, memory_limit=4000, **attrs)),
        [tf.fill([2000], value).numpy()],
    )


@difference("flex-signs-of-vectors", beside=BESIDE)
def _() -> list[Sides]:
    import tensorflow as tf

    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    square, type = x.T @ x, type_of("FLOAT32")
    shapes = [tensor((3,)), tensor((4, 3)), tensor((3, 3))]
    return [
        (flex("Svd", [x], shapes, T=type)[1:], [v.numpy() for v in tf.linalg.svd(x)[1:]]),
        (
            flex("SelfAdjointEigV2", [square], [shapes[0], shapes[2]], T=type)[1:],
            [tf.linalg.eigh(square)[1].numpy()],
        ),
    ]


@difference("flex-printed-text", beside=BESIDE)
def _() -> Sides:
    import tensorflow as tf

    text = np.array(b"some words", object)
    attrs = {"output_stream": b"stdout"}
    ours = printed(lambda: flex("PrintV2", [text], [], **attrs))
    return ours, printed(lambda: tf.raw_ops.PrintV2(input="some words", output_stream="stdout"))


def printed(action: Callable[[], Any]) -> str:
    """Return the text that *action* writes to the descriptor of standard output."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            action()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode()


def our_fold(function: Callable[..., Any], takes: int, *batch: str) -> Any:
    """Return what the NumPy executor folds 0 to 4, or *batch* of them, into; 1 is the first state.

    Args:
        function: from a state and what is read to the next state.
        takes: values that it says it takes.
        batch: the operator that makes pairs of the numbers, if any.
    """
    from delegraph import TensorType
    from delegraph_flex.flex_node import FlexNode, FunctionSignature, Surroundings
    from delegraph_flex.node_def import Function, NodeDef
    from delegraph_flex.numpy_executor.executor import NumpyExecutor

    executor, long, dataset = NumpyExecutor(), TensorType.INT64, TensorType.VARIANT
    signature = FunctionSignature((long,) * takes, (None,) * takes, (long,), (None,))
    around = Surroundings({}, lambda _, arrays: [function(*arrays)], lambda _: signature)

    def call(op: str, inputs: Sequence[Any], out: TensorType, **attrs: Any) -> Any:
        attrs |= {"output_types": [type_of("INT64")], "output_shapes": [None]}
        types = tuple(long if isinstance(x, np.int64) else dataset for x in inputs)
        node = FlexNode(0, NodeDef(op, attrs, len(inputs)), types, (out,), around)
        values = [
            executor.enter(x, t) if t is long else x for x, t in zip(inputs, types, strict=True)
        ]
        return executor.bind(node)(*values)

    source = call("RangeDataset", np.int64([0, 5, 1]), dataset)
    for op in batch:
        source = call(op, [source, np.int64(2)], dataset)
    attrs = {"f": Function("f"), "Tstate": [type_of("INT64")], "Targuments": []}
    [state] = call("ReduceDataset", [source, np.int64(1)], long, **attrs)
    return executor.leave(state, long).tolist()


def their_fold(function: Callable[..., Any], takes: int, *batch: str) -> Any:
    """Return what TensorFlow folds the same numbers into; the arguments are the same."""
    import tensorflow as tf

    long = {"output_types": [tf.int64], "output_shapes": [None]}
    numbers = [tf.constant(x, tf.int64) for x in (0, 5, 1, 2)]
    source = tf.raw_ops.RangeDataset(start=numbers[0], stop=numbers[1], step=numbers[2], **long)
    for op in batch:
        source = getattr(tf.raw_ops, op)(input_dataset=source, batch_size=numbers[3], **long)
    traced = tf.function(function).get_concrete_function(*[tf.TensorSpec(None, tf.int64)] * takes)
    [state] = tf.raw_ops.ReduceDataset(
        input_dataset=source, initial_state=[numbers[2]], other_arguments=[], f=traced, **long
    )
    return state.numpy().tolist()


@difference("flex-functions-that-take-fewer-values", beside=BESIDE)
def _() -> Sides:
    def doubled(state: Any) -> Any:
        return state * 2

    return attempt(lambda: our_fold(doubled, 1)), attempt(lambda: their_fold(doubled, 1))


@difference("flex-first-batch-operator", beside=BESIDE)
def _() -> Sides:
    import tensorflow as tf

    case = (2, "BatchDataset")
    ours = attempt(lambda: our_fold(lambda state, x: 3 * state + x.sum(), *case))
    return ours, attempt(lambda: their_fold(lambda state, x: 3 * state + tf.reduce_sum(x), *case))
