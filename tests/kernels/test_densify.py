"""DENSIFY against a slow decoder and the official interpreter."""

import dataclasses

import numpy as np
import pytest

from delegraph.errors import OperatorError
from delegraph.graph.sparsity import DimensionMetadata, Sparsity, dense_places
from delegraph.schema import tables
from delegraph.schema.enums import DimensionType, TensorType
from delegraph.testing import TensorDef, constant, delegraph_outputs
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays


def csr(dense):
    """Return the values and the row-compressed storage order of a matrix."""
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
    levels = (DimensionMetadata(len(dense)), DimensionMetadata(0, starts, columns.astype(np.int32)))
    return dense[rows, columns], Sparsity((0, 1), (), levels)


def blocked(dense, block):
    """Return the same of a matrix whose columns are stored in blocks that hold anything."""
    parts = dense.reshape(len(dense), -1, block)
    rows, columns = np.nonzero(parts.any(-1))
    starts = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
    levels = (
        DimensionMetadata(len(dense)),
        DimensionMetadata(0, starts, columns.astype(np.int32)),
        DimensionMetadata(block),
    )
    return parts[rows, columns].reshape(-1), Sparsity((0, 1, 2), (1,), levels)


def random_sparse(seed):
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 9, (5, 8)) * (rng.random((5, 8)) < 0.3)).astype(np.float32)


def restored(values, sparsity, shape):
    dense = np.zeros(shape, np.float32)
    dense.reshape(-1)[dense_places(sparsity, shape)] = values
    return dense


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_expanded(seed):
    dense = random_sparse(seed)
    np.testing.assert_array_equal(restored(*csr(dense), dense.shape), dense)


@pytest.mark.parametrize("block", [2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_expanded(seed, block):
    dense = random_sparse(seed)
    np.testing.assert_array_equal(restored(*blocked(dense, block), dense.shape), dense)


def test_traversal_order_may_be_columns_first():
    dense = random_sparse(0)
    values, sparsity = csr(np.ascontiguousarray(dense.T))
    by_columns = dataclasses.replace(sparsity, traversal_order=(1, 0))
    np.testing.assert_array_equal(restored(values, by_columns, dense.shape), dense)


ROWS = np.array([0, 1, 1], np.int32)
ONE = np.array([0], np.int32)
BAD = {
    "order": (Sparsity((0, 0), (), (DimensionMetadata(2),) * 2), "traversal order"),
    "levels": (Sparsity((0, 1), (), (DimensionMetadata(2),)), "1 levels"),
    "block map": (Sparsity((0, 1, 2), (5,), (DimensionMetadata(2),) * 3), "block map"),
    "huge": (Sparsity((0, 1), (), (DimensionMetadata(2**31 - 1),) * 2), "places in 6 elements"),
    "index": (
        Sparsity((0, 1), (), (DimensionMetadata(2), DimensionMetadata(0, ROWS, ONE + 3))),
        "outside dimension 1",
    ),
    "negative": (
        Sparsity((0, 1), (), (DimensionMetadata(2), DimensionMetadata(0, ROWS, ONE - 1))),
        "outside dimension 1",
    ),
    "segments": (
        Sparsity((0, 1), (), (DimensionMetadata(2), DimensionMetadata(0, ROWS[:2], ONE))),
        "2 segment starts for 2 rows",
    ),
    "end": (
        Sparsity((0, 1), (), (DimensionMetadata(2), DimensionMetadata(0, ROWS * 2, ONE))),
        "segments end at 2",
    ),
    "falling": (
        Sparsity((0, 1), (), (DimensionMetadata(2), DimensionMetadata(0, ROWS[[0, 2, 0]], ONE))),
        "segment starts",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sparsity", "match"), BAD.values(), ids=BAD)
def test_damaged_metadata_are_refused(sparsity, match):
    with pytest.raises(OperatorError, match=match):
        dense_places(sparsity, (2, 3))


def stored(level):
    """Return the schema's record of a dimension."""
    if level.array_segments is None:
        return tables.DimensionMetadata(dense_size=level.dense_size)
    return tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=tables.Int32Vector(values=level.array_segments),
        array_indices=tables.Int32Vector(values=level.array_indices),
    )


def sparse_constant(values, sparsity, shape):
    record = tables.SparsityParameters(
        traversal_order=sparsity.traversal_order,
        block_map=sparsity.block_map,
        dim_metadata=tuple(map(stored, sparsity.dim_metadata)),
    )
    data = np.frombuffer(values.tobytes(), np.uint8)
    return TensorDef(shape, TensorType.FLOAT32, None, data, sparsity=record)


@pytest.mark.parametrize("storage", [csr, lambda dense: blocked(dense, 4)], ids=["rows", "blocks"])
def test_densify_gives_the_dense_constant(storage):
    dense = random_sparse(3)
    x = sparse_constant(*storage(dense), dense.shape)
    (y,) = assert_agrees("DENSIFY", [x], ["FLOAT32"])
    np.testing.assert_array_equal(y, dense)


def test_densify_refuses_a_dense_constant():
    x = constant(random_sparse(0))
    assert_both_refuse("DENSIFY", [x], ["FLOAT32"], match="dense, expected a spar")


def test_densify_refuses_too_few_values():
    dense = random_sparse(0)
    values, sparsity = csr(dense)
    x = sparse_constant(values[:-1], sparsity, dense.shape)
    model, _ = model_and_arrays("DENSIFY", [x], ["FLOAT32"])
    with pytest.raises(RuntimeError, match="values stored for"):
        delegraph_outputs(model, [])
