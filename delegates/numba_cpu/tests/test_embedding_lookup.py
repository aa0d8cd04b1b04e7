"""EMBEDDING_LOOKUP: equal to the official kernel, at every level, without copies of tables."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from delegated import delegated, is_taken, levels, run
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema.writer import write_model
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.one_op import one_op_records
from delegraph.testing.operator_cases.quantizing import with_blocks
from support.official import official_outputs

RNG = np.random.default_rng(0)
OP = "EMBEDDING_LOOKUP"


def integers(shape: tuple[int, ...], type: str) -> np.ndarray[Any, Any]:
    limit = 8 if type == "INT4" else 128
    values = RNG.integers(-limit, limit, shape).astype(np.int8)
    return values.view(np.uint8) if type == "UINT8" else values


def lookup_model(
    table: np.ndarray[Any, Any], type: str | None = None, scale: Any = None, count: int = 5
) -> bytes:
    rows = constant(table, type, scale=scale)
    y = tensor((count, *table.shape[1:]), "FLOAT32" if scale is not None else rows.type.name)
    return one_op_model(OP, [tensor((count,), "INT32"), rows], [y], version=4)


def blocks_model(shape: tuple[int, int], size: int, type: str = "INT4") -> bytes:
    inputs = [tensor((5,), "INT32"), constant(integers(shape, type), type)]
    records = one_op_records(OP, inputs, [tensor((5, shape[1]))], version=5)
    scales = RNG.uniform(0.001, 1, (shape[0], shape[1] // size)).astype(np.float16)
    scales[0, 0] = np.float16(3e-7)  # a subnormal number
    return write_model(with_blocks(records, 1, scales, size))


def assert_official(model: bytes, rows: int, level: str) -> None:
    positions = np.array([rows - 1, 0, *RNG.integers(0, rows, 3)], np.int32)
    interpreter = delegated(model, level, num_threads=2)
    interpreter.allocate_tensors()
    assert is_taken(interpreter), interpreter.placement.nodes
    (expected,) = official_outputs(model, [positions])
    np.testing.assert_array_equal(run(interpreter, positions), expected)


@levels
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (6, 3), (9, 64), (4, 1), (11, 2, 33), (3, 1000)])
@pytest.mark.parametrize("type", ["INT4", "INT8", "UINT8"])
def test_rows_of_integers_become_floats(
    type: str, shape: tuple[int, ...], by_row: bool, level: str
) -> None:
    scale = RNG.uniform(0.1, 1, shape[0]).tolist() if by_row else 0.3
    assert_official(lookup_model(integers(shape, type), type, scale), shape[0], level)


@levels
@pytest.mark.parametrize(("shape", "size"), [((7, 96), 32), ((5, 12), 4), ((3, 40), 40)])
def test_blocks_of_rows_have_scales(shape: tuple[int, int], size: int, level: str) -> None:
    assert_official(blocks_model(shape, size), shape[0], level)


@pytest.mark.parametrize("table", [RNG.normal(size=(6, 3, 5)), integers((9, 4), "INT8")])
def test_rows_of_the_output_type_are_copied(table: np.ndarray[Any, Any]) -> None:
    values = table.astype(np.float32) if table.dtype == np.float64 else table
    assert_official(lookup_model(values), len(values), "auto")


def test_blocks_that_begin_inside_a_byte_are_left_to_the_host() -> None:
    with Interpreter(model_content=blocks_model((4, 9), 3), delegates=["numba_cpu"]) as found:
        rejected = found.placement.nodes[0].rejections["numba_cpu"]
        assert rejected.constraint == "block-size"


@pytest.mark.parametrize("type", ["INT4", "FLOAT32"])
@pytest.mark.parametrize("position", [-1, 7, 2**31 - 1])
def test_a_position_outside_is_an_error_that_names_it(position: int, type: str) -> None:
    values = integers((7, 4), "INT4")
    model = (
        lookup_model(values, "INT4", 0.5) if type == "INT4" else lookup_model(np.float32(values))
    )
    interpreter = delegated(model)
    interpreter.allocate_tensors()
    wrong = rf"\(EMBEDDING_LOOKUP\): position {position} is outside \[0, 7\)"
    with pytest.raises(DelegraphError, match=wrong):
        run(interpreter, np.array([0, position, 1, 2, 3], np.int32))
    assert run(interpreter, np.arange(5, dtype=np.int32)).shape == (5, 4)


@pytest.mark.parametrize("delegates", [[], ["numba_cpu"]])
@pytest.mark.parametrize("type", ["INT4", "FLOAT32"])
def test_the_table_is_not_copied(type: str, delegates: list[str]) -> None:
    table = integers((4096, 512), "INT4")
    model = (
        lookup_model(table, "INT4", 0.5, 1)
        if type == "INT4"
        else lookup_model(np.float32(table), count=1)
    )
    positions = np.array([4095], np.int32)
    with Interpreter(model_content=model[:], delegates=delegates) as interpreter:
        run(interpreter, positions)  # imports what later runs use
    with Interpreter(model_content=model[:], delegates=delegates) as interpreter:
        interpreter.get_input_details()
        tracemalloc.start()
        try:
            found = run(interpreter, positions)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    np.testing.assert_array_equal(
        found[0], np.float32(table[4095]) * (0.5 if type == "INT4" else 1)
    )
    assert most < 1 << 20
