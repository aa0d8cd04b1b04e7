"""Table of operators: how each is checked, and how it is lowered to kernel calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delegraph import Claim, DelegateContext, Node, Rejection, Tensor
from delegraph.errors import OperatorError
from delegraph.operators import LazyTable, options_or_defaults
from delegraph_numba_cpu.program.builder import ProgramBuilder


@dataclass(frozen=True, slots=True)
class Call:
    """A node of the partition, with its context.

    Attributes:
        context: the host's context for the subgraph.
        node: indices of the node's inputs and outputs, and its options.
        name: name of the node's operator.
    """

    context: DelegateContext
    node: Node
    name: str

    @property
    def options(self) -> Any:
        """The operator's options; the schema's defaults if the file has no options."""
        return options_or_defaults(self.node, self.name)

    def input(self, i: int) -> Tensor:
        """Return the tensor of input *i*.

        Raises:
            OperatorError: the input is absent.
        """
        found = self.optional_input(i)
        if found is None:
            raise OperatorError(f"input {i} is absent, and {self.name} needs it")
        return found

    def optional_input(self, i: int) -> Tensor | None:
        """Return the tensor of input *i*; None if the input is absent."""
        inputs = self.node.inputs
        return None if i >= len(inputs) or inputs[i] < 0 else self.context.tensors[inputs[i]]

    def output(self, i: int = 0) -> Tensor:
        """Return the tensor of output *i*.

        Raises:
            OperatorError: the output is absent.
        """
        outputs = self.node.outputs
        if i >= len(outputs) or outputs[i] < 0:
            raise OperatorError(f"output {i} is absent, and {self.name} needs it")
        return self.context.tensors[outputs[i]]


def with_operands(
    node: Node,
    index: int,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    intermediates: tuple[int, ...] = (),
) -> Node:
    """Return a copy of *node* with another index, and other inputs, outputs and intermediates."""
    return Node(
        index, inputs, outputs, intermediates, node.options, node.custom_options, node.version,
        delegate=node.delegate,
    )  # fmt: skip


Check = Callable[[Call], Rejection | None]
"""Function that returns the reason why a node is rejected; None if the node is accepted.

A check need not test whether each operand is present: :meth:`Operator.rejection` turns an
``OperatorError`` into a rejection.
"""

Lower = Callable[[Call, ProgramBuilder], None]
"""Function that adds a node's kernel calls; all shapes are known, also the outputs'."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that this delegate supports: its check, its lowering and its claims.

    Attributes:
        check: function that returns the reason why a node is rejected, or None.
        lower: function that adds a node's kernel calls to the program.
        types: names of the claimed tensor types.
        features: claimed features, names of ``delegraph.delegation.capabilities.FEATURES``.
        variants: claims by type, if the claims depend on a type.
        roles: role of each operand whose claimed types differ from *types*, with these types.
        by_type: mapping from a type to the operator for this type; see :func:`register_variants`.
    """

    check: Check
    lower: Lower
    types: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    variants: tuple[Operator, ...] = ()
    roles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    by_type: Mapping[str, Operator] = field(default_factory=dict, hash=False)

    def rejection(self, call: Call) -> Rejection | None:
        """Return the reason why the node *call* is not supported; None if it is supported."""
        try:
            return self.check(call)
        except OperatorError as error:
            return Rejection("not-well-formed", str(error))

    def claims(self, name: str) -> list[Claim]:
        """Return the delegate's claims for the operator: supported types and features.

        Args:
            name: name of the operator.
        """
        if self.variants:
            return [claim for variant in self.variants for claim in variant.claims(name)]
        roles: dict[str, Any] = dict(self.roles)
        return [Claim(name, self.types, *self.features, **roles)]


OPERATORS = LazyTable[Operator]()
"""Mapping from an operator's name to its check, lowering and claims; this package's modules fill
it."""


def register(operators: Mapping[str, Operator]) -> None:
    """Add operators to the table of operators that this delegate supports, for all input types.

    Args:
        operators: checks, lowerings and claims, by the operator's name.

    Raises:
        ValueError: an operator is already registered.
    """
    for name, operator in operators.items():
        OPERATORS.enter(name, operator)


def register_variants(type: str, operators: Mapping[str, Operator], position: int = 0) -> None:
    """Add operators for nodes whose input at *position* has the type *type*.

    Args:
        type: the type's name.
        operators: the operators by name.
        position: position of the input whose type selects the variant; equal for all variants of an
            operator.

    Raises:
        ValueError: an operator is already registered, for this type or for all types.
    """
    for name, operator in operators.items():
        other = OPERATORS.entered.get(name)
        by_type = {} if other is None else other.by_type
        if type in by_type or (other is not None and not by_type):
            raise ValueError(f"{name} is registered already for {type}")
        OPERATORS.entered[name] = _by_type({**by_type, type: operator}, position)


def one_of(choose: Callable[[Call], Operator], *variants: Operator) -> Operator:
    """Return an operator that checks and lowers each node by the variant that *choose* returns."""
    return Operator(
        lambda call: choose(call).check(call),
        lambda call, builder: choose(call).lower(call, builder),
        variants=variants,
    )


def _by_type(variants: Mapping[str, Operator], position: int) -> Operator:
    """Return an operator that selects a variant by the type of the node's input at *position*."""

    def check(call: Call) -> Rejection | None:
        found = call.input(position).type.name
        if found in variants:
            return variants[found].check(call)
        expected = " or ".join(sorted(variants))
        tensor = call.node.inputs[position]
        return Rejection("dtype", actual=found, expected=expected, tensor=tensor)

    def lower(call: Call, builder: ProgramBuilder) -> None:
        found = call.input(position).type.name
        if found not in variants:  # only claims with open shapes come to this line
            expected = " or ".join(sorted(variants))
            raise OperatorError(f"input {position} has turned out to be {found}, not {expected}")
        variants[found].lower(call, builder)

    distinct = tuple(dict.fromkeys(variants.values()))
    return Operator(check, lower, variants=distinct, by_type=variants)
