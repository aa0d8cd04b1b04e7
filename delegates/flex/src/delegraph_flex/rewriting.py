"""Rewrites builtin operators of a ``.tflite`` file as Flex operators."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import BuiltinOperator
from delegraph.errors import ArgumentError, did_you_mean
from delegraph.graph import OperatorSpec, SubgraphSpec, load_model, parse_model, self_contained
from delegraph.schema import read_model, tables, write_model
from delegraph_flex.custom_options import PREFIX, write_custom_options
from delegraph_flex.data_types import DataType
from delegraph_flex.node_def import NodeDef
from delegraph_flex.rewrite import CannotFlexify, Rewrite
from delegraph_flex.rewrite_rules import RULES


def flexify(
    model: str | os.PathLike[str] | bytes, nodes: Iterable[int | str] | None = None
) -> bytes:
    """Return a model with builtin operators of its first subgraph rewritten as Flex operators.

    A builtin operator that does several things (a convolution with bias and activation) becomes
    several Flex operators. All other parts of the model are kept.

    Args:
        model: path of a ``.tflite`` file, or its bytes.
        nodes: operators to rewrite: node indices, or names (``"SIN"``) for all operators of the
            name; None means all operators that can be rewritten.

    Raises:
        CannotFlexify: (ValueError) a requested operator cannot be rewritten.
        ArgumentError: (ValueError) a node, operator or file does not exist.
        MalformedModelError: (ValueError) the model is damaged.
    """
    return rewritten(model, nodes).content


@dataclass(frozen=True)
class Flexified:
    """A rewritten model, with a record of the rewritten operators.

    Attributes:
        content: bytes of the model.
        became: mapping from the old index of each rewritten operator to its name and the TensorFlow
            operators that replace it.
        left: mapping from the old index of each other operator to its name and the reason; the
            reason is empty if the operator was not requested.
    """

    content: bytes
    became: dict[int, tuple[str, list[str]]]
    left: dict[int, tuple[str, str]]


def rewritten(
    model: str | os.PathLike[str] | bytes, nodes: Iterable[int | str] | None = None
) -> Flexified:
    """Return a model with builtin operators rewritten as Flex operators, and a record of that.

    For *model* and *nodes* see :func:`flexify`.
    """
    loaded = parse_model(model) if isinstance(model, bytes) else load_model(model)
    subgraph = loaded.subgraphs[0]
    record = read_model(self_contained(loaded))
    wanted = None if nodes is None else _indices(subgraph, nodes)
    rewriting = _Rewriting(record, subgraph, wanted)
    return Flexified(write_model(rewriting.model()), rewriting.became, rewriting.left)


def _indices(subgraph: SubgraphSpec, nodes: Iterable[int | str]) -> set[int]:
    """Return the indices of the nodes of *subgraph* that *nodes* lists by index or name."""
    by_name: dict[str, list[int]] = {}
    for operator in subgraph.operators:
        by_name.setdefault(operator.name, []).append(operator.index)
    found: set[int] = set()
    for node in nodes:
        if isinstance(node, str):
            if node not in by_name:
                known = ", ".join(sorted(by_name))
                raise ArgumentError(
                    f"no operator {node!r}{did_you_mean(node, by_name)}; there are {known}"
                )
            found.update(by_name[node])
        elif 0 <= node < len(subgraph.operators):
            found.add(node)
        else:
            raise ArgumentError(f"no node {node}; there are {len(subgraph.operators)}")
    return found


class _Rewriting:
    """Makes a copy of a model in which builtin operators of its first subgraph are TensorFlow's.

    It collects the copy's operator codes, buffers, tensors and operators.
    """

    def __init__(self, record: tables.Model, subgraph: SubgraphSpec, wanted: set[int] | None):
        self._record = record
        self._subgraph = subgraph
        self._wanted = wanted
        self._codes = {code: i for i, code in enumerate(record.operator_codes or ())}
        self._buffers = list(record.buffers or ())
        self._tensors = list((record.subgraphs or ())[0].tensors or ())
        self.became: dict[int, tuple[str, list[str]]] = {}
        self.left: dict[int, tuple[str, str]] = {}

    def model(self) -> tables.Model:
        """Return the record of the new model."""
        subgraphs = self._record.subgraphs or ()
        records = subgraphs[0].operators or ()
        operators = tuple(
            new
            for operator, old in zip(self._subgraph.operators, records, strict=True)
            for new in self._rewritten(operator, old)
        )
        first = subgraphs[0].replace(operators=operators, tensors=tuple(self._tensors))
        return self._record.replace(
            operator_codes=tuple(self._codes),
            subgraphs=(first, *subgraphs[1:]),
            buffers=tuple(self._buffers),
        )

    def _rewritten(self, operator: OperatorSpec, old: tables.Operator) -> Iterator[tables.Operator]:
        """Yield the operators that replace *operator*: *old* itself, or Flex operators."""
        if self._wanted is not None and operator.index not in self._wanted:
            self.left[operator.index] = (operator.name, "")
            yield old
            return
        rewrite = Rewrite(operator, self._subgraph.tensors, len(self._tensors))
        try:
            apply_rule(rewrite)
        except CannotFlexify as error:
            if self._wanted is not None:
                raise
            self.left[operator.index] = (operator.name, error.reason)
            yield old
            return
        ops = [node_def.op for node_def, _, _ in rewrite.calls]
        self.became[operator.index] = (operator.name, ops)
        self._tensors += [self._with_buffer(*added) for added in rewrite.added]
        for node_def, inputs, outputs in rewrite.calls:
            yield self._flex_operator(node_def, inputs, outputs)

    def _with_buffer(self, record: tables.Tensor, values: NDArray[Any] | None) -> tables.Tensor:
        if values is None:
            return record
        data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        self._buffers.append(tables.Buffer(data=data))
        return record.replace(buffer=len(self._buffers) - 1)

    def _flex_operator(
        self, node_def: NodeDef, inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> tables.Operator:
        code = tables.operator_code(BuiltinOperator.CUSTOM, custom_code=PREFIX + node_def.op)
        options = np.frombuffer(write_custom_options(node_def), np.uint8)
        return tables.Operator(
            opcode_index=self._codes.setdefault(code, len(self._codes)),
            inputs=inputs,
            outputs=outputs,
            custom_options=options,
        )


def apply_rule(rewrite: Rewrite) -> None:
    """Replace the builtin operator of *rewrite* by Flex operators.

    Raises:
        CannotFlexify: the operator has no rule, or has a property that TensorFlow's operators lack.
    """
    operator = rewrite.operator
    rule = RULES.get(operator.name)
    known: Mapping[str, Any] = DataType.__members__
    rewrite.require(rule is not None, "TensorFlow has no equal operator, or no rule is known")
    for index in (*operator.inputs, *operator.outputs):
        tensor = rewrite.tensors[index] if index >= 0 else None
        if tensor is not None:
            rewrite.require(tensor.type.name in known, f"TensorFlow has no {tensor.type.name}")
            rewrite.require(
                tensor.quantization is None or not tensor.quantization.scales.size,
                f"tensor {index} is quantised, which TensorFlow's operators are not",
            )
            rewrite.require(tensor.sparsity is None, f"tensor {index} is stored sparsely")
    if rule is not None:
        rule(rewrite)
