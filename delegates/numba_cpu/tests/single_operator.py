"""One operator on its own, by this delegate alone: no check of the core stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter, Node, Registration, Rejection, Tensor, builtin_registration
from delegraph.delegation import BlobCache
from delegraph.graph import parse_model
from delegraph.operators import Numerics
from delegraph.testing.operator_case import OperatorCase
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.lowering import OPERATORS, Call
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.builder import ProgramBuilder
from delegraph_numba_cpu.program.program import Program

Array = NDArray[Any]

THREADS = 2


class Alone:
    """A host of the first node of a case's model, which checks nothing.

    Attributes:
        tensors: of the model; computed ones have the shapes that the model declares.
        numerics: whose rounding counts.
        cache: where compiled kernels are.
    """

    cache = BlobCache

    def __init__(self, case: OperatorCase) -> None:
        graph = parse_model(case.model()).subgraphs[0]
        self.numerics: Numerics = "builtin"
        self._host = Interpreter(model_content=case.model(), delegates=[])  # keeps the tensors
        self.tensors: Sequence[Tensor] = self._host.subgraph().tensors
        self.inputs, self.outputs = graph.inputs, graph.outputs
        operator = next(op for op in graph.operators if op.name == case.op)
        self.node = Node.from_operator(operator)
        found = builtin_registration(operator.name)
        assert found is not None
        self.registration: Registration = found

    def get_execution_plan(self) -> tuple[int, ...]:
        return (self.node.index,)

    def get_node_and_registration(self, index: int) -> tuple[Node, Registration]:
        return self.node, self.registration

    @property
    def call(self) -> Call:
        context: Any = self
        return Call(context, self.node, self.registration.name)

    def check(self) -> bool | Rejection:
        """Return what the delegate's own support function says."""
        context: Any = self
        delegate = NumbaCpuDelegate(NumbaCpuOptions())
        return delegate.is_node_supported_by_delegate(self.registration, self.node, context)

    def run(self, arrays: Sequence[Array], threads: int = THREADS) -> list[Array]:
        """Return the outputs for the graph inputs *arrays*, by the lowering alone."""
        for index, array in zip(self.inputs, arrays, strict=True):
            tensor = self.tensors[index]
            tensor.shape, tensor.data = array.shape, np.array(array, order="C")
        program = self.lower(threads)
        program.bind()
        library(supported_levels()[0]).run(program.table, 0, 0)
        return [self.tensors[index].data for index in self.outputs]

    def lower(self, threads: int = THREADS) -> Program:
        """Return the program of the lowering alone; tensors without data get zeros."""
        for tensor in self.tensors:
            if tensor.data is None:
                tensor.data = np.zeros(tensor.shape, tensor.dtype)
        context: Any = self
        builder = ProgramBuilder(context, library(supported_levels()[0]), threads, True, {})
        for index in (*self.node.inputs, *self.node.outputs):
            if index >= 0:
                builder.border(index)
        OPERATORS[self.registration.name].lower(self.call, builder)
        return builder.finish()
