"""Equal constants are kept once, and those that share a buffer of the file are packed once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from delegraph import Interpreter, Tensor
from delegraph.errors import OperatorError
from delegraph.operators import AllocationType, MemoryLimit
from delegraph.schema.enums import TensorType
from delegraph.schema.options import FullyConnectedOptions
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing import constant, graph_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph_numba_cpu.instructions.memory import Memory
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import packed_matrix
from delegraph_numba_cpu.program.builder import ProgramBuilder
from delegraph_numba_cpu.program.shared_constants import LEAST, SharedConstants, constant_key

CONSTANT = np.arange(LEAST, dtype=np.uint8)
SIZE = 24


def kept(array: object) -> Memory:
    assert isinstance(array, np.ndarray)
    return Memory(array.nbytes, array=array)


def test_equal_constants_are_kept_once() -> None:
    shared = SharedConstants(MemoryLimit(LEAST, is_default=False))
    memory = shared.memory(CONSTANT, kept)
    assert shared.memory(CONSTANT.copy(), kept) is memory
    small = CONSTANT[1:]
    assert shared.memory(small, kept) is not shared.memory(small, kept)


def test_constants_that_differ_in_one_value_are_both_kept() -> None:
    shared = SharedConstants(MemoryLimit(2 * LEAST, is_default=False))
    other = CONSTANT.copy()
    other[1] += 1
    assert shared.memory(other, kept) is not shared.memory(CONSTANT, kept)


@pytest.mark.parametrize(
    "other", [CONSTANT + 1, CONSTANT.view(np.int8), CONSTANT.reshape(2, -1)], ids=str
)
def test_others_count_toward_the_limit(other: object) -> None:
    shared = SharedConstants(MemoryLimit(2 * LEAST - 1, is_default=False))
    shared.memory(CONSTANT, kept)
    with pytest.raises(OperatorError, match=f"constants needs {2 * LEAST} bytes, more than the li"):
        shared.memory(other, kept)  # type: ignore[arg-type]


def test_tensors_of_one_buffer_have_one_memory() -> None:
    shared = SharedConstants(MemoryLimit(LEAST, is_default=False))
    tensors = [
        Tensor(
            index,
            TensorType.UINT8,
            CONSTANT.shape,
            data=CONSTANT,
            allocation_type=AllocationType.MMAP_RO,
        )
        for index in range(2)
    ]
    found = [shared.memory_of(tensor, kept) for tensor in tensors]
    assert found[0] is found[1]


def chain(count: int) -> bytes:
    """Return a chain of products by different tensors of one buffer, with a bias for each."""
    names = ["x", *(f"y{i}" for i in range(count - 1)), "y"]
    weight = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32) / SIZE
    tensors = {name: tensor((1, SIZE)) for name in names}
    for i in range(count):
        tensors[f"w{i}"] = constant(weight)
        tensors[f"b{i}"] = constant(np.full(SIZE, i, np.float32))
    nodes = [
        ("FULLY_CONNECTED", f"{x} w{i} b{i}", y, FullyConnectedOptions())
        for i, (x, y) in enumerate(pairwise(names))
    ]
    content = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    model = read_model(np.frombuffer(content, np.uint8))
    (graph,) = model.subgraphs or ()
    all_tensors = graph.tensors or ()
    buffer = next(t.buffer for t in all_tensors if t.name == "w0")
    shared = tuple(
        t.replace(buffer=buffer) if str(t.name).startswith("w") else t for t in all_tensors
    )
    return write_model(model.replace(subgraphs=(graph.replace(tensors=shared),)))


def test_tensors_of_one_buffer_are_packed_once() -> None:
    interpreter = Interpreter(model_content=chain(3), delegates=[])
    interpreter.allocate_tensors()
    subgraph = interpreter.session.subgraphs[0]
    tensors = {t.name: t for t in subgraph.tensors}
    assert constant_key(tensors["x"]) == tensors["x"].index
    assert constant_key(None) is None
    builder = ProgramBuilder(subgraph.context, library(supported_levels()[0]), 1, True, {})
    packed = [
        packed_matrix(builder, tensors[weight], tensors[bias], SIZE)
        for weight, bias in (("w0", "b0"), ("w1", "b0"), ("w1", "b1"))
    ]
    assert packed[0] is packed[1]
    assert packed[0] is not packed[2]


def test_products_by_one_buffer_are_those_of_the_kernels() -> None:
    x = np.linspace(-1, 1, SIZE, dtype=np.float32)[None]
    content = chain(3)
    (expected,) = outputs_of(Interpreter(model_content=content, delegates=[]), [x])
    (found,) = outputs_of(Interpreter(model_content=content, delegates=["numba_cpu"]), [x])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
