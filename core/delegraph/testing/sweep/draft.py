"""Drafts: cases to which oddities (random changes) are applied, with editing methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.schema import tables
from delegraph.testing.subgraphs import main_subgraph
from delegraph.testing.sweep.sweep_case import Arrays


@dataclass(frozen=True, eq=False)
class Draft:
    """A test model with inputs while random changes (oddities) are applied to it.

    Attributes:
        records: records of the model, whose first subgraph is the main one.
        steps: arrays for the model's inputs at each invoke.
    """

    records: tables.Model
    steps: tuple[Arrays, ...]

    @property
    def main(self) -> tables.SubGraph:
        """Main subgraph of the model."""
        return main_subgraph(self.records)

    @property
    def tensors(self) -> tuple[tables.Tensor, ...]:
        """Tensors of the main subgraph."""
        return self.main.tensors or ()

    def with_main(self, **changes: Any) -> Draft:
        """Return the draft with changed fields of the main subgraph."""
        others = (self.records.subgraphs or ())[1:]
        subgraphs = (self.main.replace(**changes), *others)
        return replace(self, records=self.records.replace(subgraphs=subgraphs))

    def with_tensor(self, index: int, **changes: Any) -> Draft:
        """Return the draft with changed fields of the tensor *index*."""
        tensors = list(self.tensors)
        tensors[index] = tensors[index].replace(**changes)
        return self.with_main(tensors=tuple(tensors))

    def with_node(self, at: int, **changes: Any) -> Draft:
        """Return the draft with changed fields of the node at index *at*."""
        nodes = list(self.main.operators or ())
        nodes[at] = nodes[at].replace(**changes)
        return self.with_main(operators=tuple(nodes))

    def with_data(self, index: int, data: NDArray[Any] | None) -> Draft:
        """Return the draft with *data* as the buffer of the tensor *index*; None means no data."""
        buffers = (*(self.records.buffers or ()), tables.Buffer(data=data))
        changed = self.with_tensor(index, buffer=len(buffers) - 1)
        return replace(changed, records=changed.records.replace(buffers=buffers))

    def constant(self, index: int) -> NDArray[Any] | None:
        """Return the bytes of the constant with index *index*; None for other tensors."""
        data: NDArray[Any] | None = (self.records.buffers or ())[self.tensors[index].buffer].data
        return data

    def constants(self) -> list[int]:
        """Return the indices of constants that nodes read."""
        read = {i for node in self.main.operators or () for i in node.inputs or () if i >= 0}
        return sorted(i for i in read if self.constant(i) is not None)


Oddity = Callable[[Random, Draft], Draft | None]


def constant_array(draft: Draft, index: int) -> NDArray[Any] | None:
    """Return the dense constant *index* as an array; None for packed, sparse and text constants."""
    tensor, data = draft.tensors[index], draft.constant(index)
    dtype = NUMPY_DTYPES.get(tensor.type)
    shape = tuple(tensor.shape or ())
    if data is None or dtype is None or dtype.kind == "O" or tensor.sparsity is not None:
        return None
    raw = np.asarray(data, np.uint8)
    if raw.size != dtype.itemsize * int(np.prod(shape, dtype=np.int64)):
        return None
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


def bytes_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the bytes of an array in C order, the form of buffers."""
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
