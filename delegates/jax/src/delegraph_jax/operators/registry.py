"""Table of operators, with the claim and the JAX function of each operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from delegraph import Claim, Node, Registration, Rejection, Tensor, builtin_registration
from delegraph.delegation import NodeTraits
from delegraph.errors import OperatorError
from delegraph.operators import LazyTable, Numerics, evaluate_node, options_or_defaults

FLOATS = ("FLOAT32",)
HALVES = ("BFLOAT16", "FLOAT16")
PLAIN = ("FLOAT32", "INT32", "INT64")
EIGHT_BIT = ("INT8", "UINT8")
QUANTIZED = (*EIGHT_BIT, "INT16")
MOVED = (*PLAIN, *QUANTIZED, *HALVES, "BOOL")
ANY = (*MOVED, "UINT16", "UINT32", "UINT64")
"""All types of operators that only move elements; some of these operators support fewer types."""


Doubt = tuple[Any, str]
"""A doubt: an array of one bool, true if a node's values are wrong, and the error text."""

Run = Callable[[int, Sequence[Any]], tuple[list[Any], list[Doubt]]]
"""Function that computes a subgraph, given its index and inputs, and returns outputs and doubts."""


class Callee:
    """A subgraph that a node calls, as a function for a loop or a branch of JAX."""

    def __init__(self, run: Run, index: int) -> None:
        self._run = run
        self._index = index

    def __call__(self, values: Sequence[Any]) -> tuple[list[Any], jax.Array]:
        """Return the subgraph's outputs for *values* and the flags of its doubts: ``[D], bool``."""
        outputs, doubts = self._run(self._index, values)
        return [jnp.asarray(value) for value in outputs], all_of(doubts)

    def doubts(self, values: Sequence[Any]) -> list[str]:
        """Return the error texts of all flags that the subgraph may set for these input shapes."""
        found: list[str] = []

        def keep(*values: Any) -> list[Any]:
            outputs, doubts = self._run(self._index, values)
            found.extend(why for _, why in doubts)
            return outputs

        jax.eval_shape(keep, *values)
        return found


def all_of(doubts: Sequence[Doubt]) -> jax.Array:
    """Return the flags (of possible wrong values) of all *doubts* as one array: ``[D], bool``."""
    return jnp.array([is_wrong for is_wrong, _ in doubts], bool)


class Call:
    """One node with the values of its inputs, while its partition is traced.

    Attributes:
        node: the node.
        name: name of the node's operator.
        outputs: the node's output tensors, with their shapes.
        numerics: official kernels whose rounding is used.
        doubts: flags for wrong values, with error texts; see :data:`Doubt`.
    """

    def __init__(
        self,
        node: Node,
        registration: Registration,
        tensors: Sequence[Tensor],
        values: Mapping[int, jax.Array],
        numerics: Numerics,
        run: Run,
    ) -> None:
        self.node = node
        self.name = registration.name
        self.outputs = [tensors[i] for i in node.outputs]
        self.numerics = numerics
        self.doubts: list[Doubt] = []
        self._run = run
        self._tensors = tensors
        self._values = values

    @property
    def options(self) -> Any:
        """The operator's typed options; the schema's defaults if the file has none."""
        return options_or_defaults(self.node, self.name)

    def __len__(self) -> int:
        """Return the number of inputs, including absent inputs."""
        return len(self.node.inputs)

    def input(self, i: int) -> Any:
        """Return the value of input *i*.

        Raises:
            OperatorError: the input is absent.
        """
        found = self.optional(i)
        if found is None:
            raise OperatorError(f"input {i} is absent, and {self.name} needs it")
        return found

    def optional(self, i: int) -> Any:
        """Return the value of input *i*; None if the input is absent."""
        inputs = self.node.inputs
        return None if i >= len(inputs) or inputs[i] < 0 else self._values[inputs[i]]

    def inputs(self) -> list[Any]:
        """Return the values of all inputs."""
        return [self.input(i) for i in range(len(self))]

    def tensor(self, i: int) -> Tensor:
        """Return the tensor of input *i*, which must be present."""
        return self._tensors[self.node.inputs[i]]

    def optional_tensor(self, i: int) -> Tensor | None:
        """Return the tensor of input *i*; None if the input is absent."""
        inputs = self.node.inputs
        return None if i >= len(inputs) or inputs[i] < 0 else self._tensors[inputs[i]]

    def constant(self, i: int) -> NDArray[Any]:
        """Return the value of input *i*, which must be a constant of the model file."""
        return np.asarray(self.tensor(i).data)

    def integers(self, i: int) -> list[int]:
        """Return the elements of input *i*, which must be a constant of the model file."""
        values: list[int] = self.constant(i).reshape(-1).tolist()
        return values

    def rows(self, i: int, columns: int) -> Any:
        """Return input *i* as ``[N, columns]``; an incomplete last row is dropped, as in TFLite."""
        flat = self.input(i).reshape(-1)
        count = flat.size // columns if columns else math.prod(self.tensor(i).shape[:-1])
        return flat[: count * columns].reshape(count, columns)

    def require_positions(self, positions: Any, size: int) -> None:
        """Let the host raise an error if one of *positions* is outside ``[0, size)`` in a run."""
        is_wrong = ((positions < 0) | (positions >= size)).any()
        self.doubts.append((is_wrong, f"a position is outside [0, {size})"))

    def callee(self, index: int) -> Callee:
        """Return the subgraph with the number *index* as a function."""
        return Callee(self._run, index)

    def doubt(self, wrong: Sequence[jax.Array], about: Sequence[Sequence[str]]) -> None:
        """Let the host raise an error if a flag in *wrong* is true in a run.

        *about* has the error texts for each element of *wrong*.
        """
        for flags, reasons in zip(wrong, about, strict=True):
            self.doubts += [(flags[i], why) for i, why in enumerate(reasons)]

    def evaluated(self, *inputs: NDArray[Any], numerics: Numerics | None = None) -> NDArray[Any]:
        """Return the output of Delegraph's own kernel for other *inputs*.

        *numerics* is the rounding; None means the rounding of the call.

        Raises:
            OperatorError: the kernel rejects the node.
        """
        registration = builtin_registration(self.name)
        if registration is None:
            raise OperatorError(f"Delegraph has no kernel of {self.name}")
        return evaluate_node(
            registration, self.node, self._tensors, inputs, numerics or self.numerics
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of output 0."""
        return self.outputs[0].shape


Compute = Callable[[Call], Any]
"""Function that returns the outputs of a node: an array, or a sequence of arrays."""

Check = Callable[[Any, Node, Sequence[Tensor]], "Rejection | None"]
"""Function of options, node and tensors that returns a rejection, or None if supported."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that this delegate supports, for the types in its claim.

    Attributes:
        compute: function that computes the operator; see :data:`Compute`.
        claim: claim of the delegate for the operator.
        constants: positions of inputs that must be constants, because shapes depend on them.
        check: further check of a node; see :data:`Check`.
        numerics: official kernels whose rounding the function reproduces.
    """

    compute: Compute
    claim: Claim
    constants: tuple[int, ...] = ()
    check: Check | None = None
    numerics: Sequence[Numerics] = get_args(Numerics)


OPERATORS = LazyTable[list[Operator]](__package__)
"""Mapping from an operator's name to its entries, one for each group of types."""

_FEATURES = (
    "activation",
    "broadcast",
    "dynamic-shapes",
    "empty",
    "many-dims",
    "per-channel",
    "scalar",
)
"""Features that all functions support, if their operators have the features."""


def operator(
    names: Sequence[str] | str,
    types: Sequence[str],
    *,
    features: Sequence[str] = (),
    constants: Sequence[int] = (),
    check: Check | None = None,
    lacks: Sequence[str] = (),
    numerics: Sequence[Numerics] = get_args(Numerics),
    **roles: Any,
) -> Callable[[Compute], Compute]:
    """Return a decorator that registers a function as one or several operators.

    Args:
        names: names of the operators.
        types: types that tensors may have.
        features: names from ``delegraph.delegation.capabilities.FEATURES``, in addition to the
            features that all functions support.
        constants: positions of inputs that must be constants, because shapes depend on them.
        check: further check of a node; see :data:`Check`. None means that there is none.
        lacks: features that all other functions support, but not this function.
        numerics: official kernels whose rounding the function reproduces.
        roles: types of operands with a special role; see ``Claim``.
    """
    offered = [name for name in (*_FEATURES, *features) if name not in lacks]

    def enter(compute: Compute) -> Compute:
        for name in (names,) if isinstance(names, str) else names:
            claim = Claim(name, types, *offered, **roles)
            entry = Operator(compute, claim, tuple(constants), check, numerics)
            OPERATORS.entered.setdefault(name, []).append(entry)
        return compute

    return enter


def function_of_inputs(
    name: str, types: Sequence[str], function: Callable[..., Any], count: int = 1, **more: Any
) -> None:
    """Register a function of the first *count* inputs, without options, as the operator *name*.

    *more* are further arguments of :func:`operator`.
    """
    operator(name, types, **more)(lambda call: function(*(call.input(i) for i in range(count))))


def operator_of(name: str, node: Node, tensors: Sequence[Tensor]) -> Operator:
    """Return the registered operator with *name* whose types fit the node's tensors."""
    form = NodeTraits.of(name, node, tensors)
    return next(entry for entry in OPERATORS[name] if entry.claim.misfit(form) is None)
