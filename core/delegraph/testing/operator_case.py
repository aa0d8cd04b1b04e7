"""A case of one operator: a small model and its input arrays.

Cases are used in two ways. Delegraph's tests compare Delegraph with the official interpreter, and a
delegate's tests compare the delegate with Delegraph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.node_traits import NodeTraits
from delegraph.errors import ArgumentError
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.operators.roles import operand_roles
from delegraph.schema import tables
from delegraph.schema.table import Table
from delegraph.schema.writer import write_model
from delegraph.testing.one_op import TensorDef, one_op_records, tensor
from delegraph.testing.subgraphs import Graph, main_subgraph, records_of

Arrays = Sequence[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Fed:
    """A graph input of a test model: the array that it gets, its type and its quantization."""

    array: NDArray[Any]
    definition: TensorDef


Given = Fed | TensorDef | None
"""An input of an operator: ``fed(x)`` is a graph input, ``constant(x)`` a constant."""


def fed(
    values: Any,
    type: str | None = None,
    *,
    scale: float | Sequence[float] | None = None,
    zero_point: int | Sequence[int] = 0,
) -> Fed:
    """Return a graph input (array, type and quantization) for a case.

    Args:
        values: array of the input, or a value that NumPy can convert to an array.
        type: name of a ``TensorType``; None means the type of the dtype of *values*.
        scale: one scale, or one per channel; None if the tensor is not quantized.
        zero_point: one zero point, or one per channel.
    """
    array = np.asarray(values)
    name = type or next(t.name for t, dtype in NUMPY_DTYPES.items() if dtype == array.dtype)
    return Fed(array, tensor(array.shape, name, scale=scale, zero_point=zero_point))


def texts(*values: bytes) -> NDArray[Any]:
    """Return a vector of byte strings, which may end in zero bytes."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


@dataclass(frozen=True, eq=False)
class OperatorCase:
    """One case of an operator: a model and its input arrays at each invoke.

    Attributes:
        op: name of the case's operator, such as ``CONV_2D`` or a custom name.
        records: a model of this operator, with other operators if it needs them.
        steps: the arrays for the graph inputs at each of consecutive invokes. An array of another
            shape than its input declares resizes the input first.
        is_random: whether outputs are random numbers, so that only shapes can be compared.
        tolerance: largest difference of floats, as a share of the value and of the largest output.
        reference: model with the same inputs and outputs whose results are right; used if Delegraph
            has no kernel for the operator.
        differs: whether LiteRT's result is known to differ; docs/differences.md lists such cases.

    Raises:
        ArgumentError: *reference* has other inputs or outputs.
    """

    op: str
    records: tables.Model
    steps: tuple[tuple[NDArray[Any], ...], ...] = ((),)
    is_random: bool = False
    tolerance: float = 1e-5
    reference: tables.Model | None = None
    differs: bool = False

    def __post_init__(self) -> None:
        if self.reference is None:
            return
        mine, other = _signature(self.records), _signature(self.reference)
        if mine != other:
            raise ArgumentError(f"a case of {self.op!r} is a model {mine}, its reference {other}")

    @property
    def right(self) -> tables.Model:
        """Model whose results by Delegraph's kernels are right: *reference*, or else *records*."""
        return self.records if self.reference is None else self.reference

    @property
    def main(self) -> tables.SubGraph:
        """Main subgraph of the model."""
        return main_subgraph(self.records)

    @property
    def declared_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape that the model declares for each graph input."""
        tensors = self.main.tensors or ()
        return tuple(tuple(tensors[i].shape or ()) for i in self.main.inputs or ())

    @property
    def is_resized(self) -> bool:
        """Whether an array of the first invoke has another shape than its input declares."""
        return self.declared_shapes != tuple(array.shape for array in self.steps[0])

    def model(self) -> bytes:
        """Return the model as ``.tflite`` bytes."""
        return self._content

    @cached_property
    def _content(self) -> bytes:
        """The model's bytes, kept because the kit opens a case's model several times."""
        return write_model(self.records)

    @property
    def version(self) -> int:
        """Version of the case's operator."""
        return next(c.version for c in self.records.operator_codes or () if _name(c) == self.op)

    def at_version(self, version: int) -> OperatorCase:
        """Return the case with another version of the operator."""
        codes = tuple(
            code.replace(version=version) if _name(code) == self.op else code
            for code in self.records.operator_codes or ()
        )
        return replace(self, records=self.records.replace(operator_codes=codes))

    def input_form(self) -> NodeTraits:
        """Return the form (types and version) of the case's operator, read from its inputs only.

        If several nodes have the operator, the form is that of the first node.
        """
        codes, tensors = self.records.operator_codes or (), self.main.tensors or ()
        node = self._node()
        if node is None:
            return NodeTraits(self.op, ())
        inputs = node.inputs or ()
        given = zip(operand_roles(self.op, len(inputs), 0), inputs, strict=True)
        types = tuple((role, tensors[i].type.name) for role, i in given if i >= 0)
        return NodeTraits(self.op, types, codes[node.opcode_index].version)

    def types(self) -> tuple[str, ...]:
        """Return the types of the inputs, ``("INT8", "INT32")``; see :meth:`input_form`."""
        return tuple(type for _, type in self.input_form().types)

    def output_types(self) -> tuple[str, ...]:
        """Return the declared types of the outputs; the kernel may change them."""
        tensors, node = self.main.tensors or (), self._node()
        outputs = () if node is None else node.outputs or ()
        return tuple(tensors[i].type.name for i in outputs if i >= 0)

    def declared_types(self) -> tuple[tuple[str, str], ...]:
        """Return role and type of each operand; outputs have their declared types."""
        types = self.output_types()
        outputs = zip(operand_roles(self.op, 0, len(types)), types, strict=True)
        return (*self.input_form().types, *outputs)

    def _node(self) -> tables.Operator | None:
        """Return the first node of the case's operator; None if the main subgraph has none."""
        codes = self.records.operator_codes or ()
        nodes = self.main.operators or ()
        return next((n for n in nodes if _name(codes[n.opcode_index]) == self.op), None)

    def __str__(self) -> str:
        """Return version, tensors and options of the case as text."""
        main = self.main
        options = (o.builtin_options or o.builtin_options_2 for o in main.operators or ())
        tensors = " ".join(map(self._described, main.tensors or ()))
        return f"{self.op} v{self.version} {tensors} {next(options, None) or ''}".rstrip()

    def _described(self, record: tables.Tensor) -> str:
        is_constant = (self.records.buffers or ())[record.buffer].data is not None
        return f"{record.type.name}{list(record.shape or ())}{'=' * is_constant}"


class KeptCases:
    """Cases that are made one by one when they are first needed, and then kept.

    Args:
        make: function that returns the cases; it is called once, for the first case.
    """

    def __init__(self, make: Callable[[], Iterable[OperatorCase]]) -> None:
        self._make = make
        self._made: list[OperatorCase] = []

    @cached_property
    def _source(self) -> Iterator[OperatorCase]:
        return iter(self._make())

    def __iter__(self) -> Iterator[OperatorCase]:
        for i in count():
            if i == len(self._made):
                self._made += islice(self._source, 1)
            if i == len(self._made):
                return
            yield self._made[i]

    def __bool__(self) -> bool:
        return any(True for _ in self)


def _signature(records: tables.Model) -> str:
    """Return the types of a model's inputs and outputs, ``(INT32 FLOAT32) -> FLOAT32``."""
    graph = main_subgraph(records)
    inputs, outputs = (
        " ".join((graph.tensors or ())[i].type.name for i in indices or ())
        for indices in (graph.inputs, graph.outputs)
    )
    return f"({inputs}) -> {outputs}"


def _name(code: tables.OperatorCode) -> str:
    return code.custom_code or code.builtin_code.name


def operator_case(
    op: str,
    inputs: Sequence[Given],
    outputs: Sequence[str | TensorDef],
    options: Table | None = None,
    *,
    version: int = 1,
    custom_options: bytes | None = None,
    intermediates: Sequence[TensorDef] = (),
    later: Sequence[Arrays] = (),
    is_random: bool = False,
    tolerance: float = 1e-5,
    reference: tables.Model | None = None,
    differs: bool = False,
) -> OperatorCase:
    """Return a case whose model has a single operator.

    Args:
        op: operator name.
        inputs: ``fed(x)`` for a graph input, ``constant(x)`` for a constant, ``None`` for an absent
            input.
        outputs: type names; or tensors, if they are quantized or need a shape.
        options: the operator's options.
        version: version of the operator.
        custom_options: raw bytes of a custom operator.
        intermediates: tensors that only give quantization.
        later: arrays for the inputs at each further invoke.
        is_random: whether outputs are random numbers, so that only shapes can be compared.
        tolerance: largest difference of floats, as a share of the value and of the largest output.
        reference: model with the same inputs and outputs whose results are right.
        differs: whether LiteRT's result is known to differ.
    """
    records = one_op_records(
        op,
        [x.definition if isinstance(x, Fed) else x for x in inputs],
        [tensor((), y) if isinstance(y, str) else y for y in outputs],
        options,
        version=version,
        custom_options=custom_options,
        intermediates=intermediates,
    )
    first = tuple({id(x): x.array for x in inputs if isinstance(x, Fed)}.values())
    steps = (first, *(tuple(arrays) for arrays in later))
    return OperatorCase(op, records, steps, is_random, tolerance, reference, differs)


def graph_case(
    op: str, graphs: Sequence[Graph], *steps: Arrays, is_random: bool = False
) -> OperatorCase:
    """Return a case of a model with the subgraphs *graphs*, the first of which is the main one.

    *op* is the operator that the case is about; *is_random* says that its results are random.
    """
    return OperatorCase(op, records_of(*graphs), tuple(map(tuple, steps)), is_random)
