"""What a delegate says it can compute, declared once: operators, types, features, tolerances.

The conformance kit tries everything that is claimed here, the shadow policy compares within the
tolerances, and ``Capabilities.check`` turns the claims into an answer with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from delegraph.delegation.rejections import Rejection
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import ArgumentError
from delegraph.operators.registration import Node, OpContext, Registration
from delegraph.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from delegraph.operators.tensor import Tensor

FEATURES = {
    "activation": "a fused activation function other than NONE",
    "broadcast": "inputs of different shapes",
    "computed-weights": "weights or other parameters that are not constant",
    "dynamic-shapes": "shapes known only while invoking",
    "empty": "tensors without elements",
    "extreme-values": "floats that are NaN, infinite, denormal, or so large that squares overflow",
    "many-dims": "more than four dimensions",
    "per-channel": "a scale for each channel instead of one for the tensor",
    "scalar": "tensors without dimensions",
    "sparse": "constants stored without their zeros",
    "subgraph": "operators that call other subgraphs",
}
"""Features a claim may name, and what each means; a case of the kit needs those it shows."""

_DEFAULT_TOLERANCES = {
    TensorType.FLOAT16: Tolerance(1e-2, 1e-3),
    TensorType.BFLOAT16: Tolerance(5e-2, 1e-2),
    TensorType.FLOAT32: Tolerance(1e-4, 1e-5),
    TensorType.FLOAT64: Tolerance(1e-9, 1e-12),
    TensorType.COMPLEX64: Tolerance(1e-4, 1e-5),
    TensorType.COMPLEX128: Tolerance(1e-9, 1e-12),
}


_MOST_SHOWN = 12
"""Operators or types that a reason names; a delegate may claim a hundred."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Operators that a delegate takes, and in which form.

    Attributes:
        operators: names, ``"ADD"``, custom ones by their custom code.
        types: names of the TensorTypes that their inputs and outputs may have, biases and indices
            included.
        features: what else may occur, names of :data:`FEATURES`.

    Raises:
        ArgumentError: a name that does not exist.
    """

    operators: tuple[str, ...]
    types: tuple[str, ...]
    features: frozenset[str] = frozenset()

    def __init__(
        self, operators: Iterable[str] | str, types: Iterable[str] | str, *features: str
    ) -> None:
        for name, value in (("operators", operators), ("types", types)):
            names = (value,) if isinstance(value, str) else tuple(value)
            object.__setattr__(self, name, names)
        object.__setattr__(self, "features", frozenset(features))
        self._check()

    def covers(self, operator: str, types: Set[str], features: Set[str] = frozenset()) -> bool:
        """Return whether it names the operator, all the types and all the features."""
        return operator in self.operators and types <= set(self.types) and features <= self.features

    def _check(self) -> None:
        for name in self.types:
            if name not in TensorType.__members__:
                raise ArgumentError(f"claim of {self.operators}: no TensorType {name!r}")
        unknown = sorted(self.features - FEATURES.keys())
        if unknown:
            raise ArgumentError(
                f"claim of {self.operators}: no feature {unknown[0]!r}; there are: "
                + ", ".join(FEATURES)
            )
        if not self.operators or not self.types:
            raise ArgumentError("a claim names at least one operator and one type")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """All that a delegate claims; empty when it declares nothing.

    >>> Capabilities(
    ...     [Claim(["ADD", "SUB"], "FLOAT32", "broadcast")],
    ...     tolerance={"FLOAT32": Tolerance(relative=1e-6)},
    ... ).tolerance_of(TensorType.FLOAT32)
    Tolerance(relative=1e-06, absolute=0.0)

    Attributes:
        claims: what it takes.
        tolerance: TensorType name to tolerance. Not named: exact for integers, strings and BOOL,
            the usual rounding of a few operations for floats.
    """

    claims: tuple[Claim, ...] = ()
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)

    def __init__(
        self, claims: Iterable[Claim] = (), tolerance: Mapping[str, Tolerance] | None = None
    ) -> None:
        object.__setattr__(self, "claims", tuple(claims))
        object.__setattr__(self, "tolerance", dict(tolerance or {}))
        for name in self.tolerance:
            if name not in TensorType.__members__:
                raise ArgumentError(f"tolerance: no TensorType {name!r}")

    def tolerance_of(self, type: TensorType) -> Tolerance:
        """Return how far results of a type may be off."""
        given = self.tolerance.get(type.name)
        return _DEFAULT_TOLERANCES.get(type, Tolerance()) if given is None else given

    def covers(self, operator: str, types: Set[str], features: Set[str] = frozenset()) -> bool:
        """Return whether one claim names the operator, all the types and all the features."""
        return any(claim.covers(operator, types, features) for claim in self.claims)

    def check(self, registration: Registration, node: Node, context: OpContext) -> bool | Rejection:
        """Return True when a claim covers the node's operator and types, else a reason.

        Features are not looked at: a delegate that lacks one checks that itself.
        """
        name = registration.name
        if registration.builtin_code == BuiltinOperator.DELEGATE:
            return Rejection("op", actual=f"delegate node of {name}", expected=self._operators())
        claims = [claim for claim in self.claims if name in claim.operators]
        if not claims:
            return Rejection("op", actual=name, expected=self._operators())
        tensors = [context.tensors[i] for i in (*node.inputs, *node.outputs) if i >= 0]
        fits = [_fitting(claim, tensors) for claim in claims]
        best = max(fits)
        if best == len(tensors):
            return True
        # What else this tensor might be, by the claims that the tensors before it fit as well.
        nearest = [claim for claim, fit in zip(claims, fits, strict=True) if fit == best]
        expected = dict.fromkeys(type for claim in nearest for type in claim.types)
        return Rejection(
            "dtype",
            actual=tensors[best].type.name,
            expected=_alternatives(expected),
            tensor=tensors[best].index,
        )

    def _operators(self) -> str:
        return _alternatives(op for claim in self.claims for op in claim.operators)


def _fitting(claim: Claim, tensors: Sequence[Tensor]) -> int:
    """Return how many tensors, from the first on, have types that *claim* names."""
    return sum(1 for _ in takewhile(lambda tensor: tensor.type.name in claim.types, tensors))


def _alternatives(names: Iterable[str]) -> str:
    """Return names as a reason has them; of many the first ones, and how many there are.

    >>> _alternatives(["ADD", "SUB", "ADD"]), _alternatives(map(str, range(20)))
    ('ADD or SUB', '0 or 1 or 2 or 3 or 4 or 5 or 6 or 7 or 12 others')
    """
    different = list(dict.fromkeys(names))
    shown = different if len(different) <= _MOST_SHOWN else different[: _MOST_SHOWN - 4]
    more = [f"{len(different) - len(shown)} others"] * (len(shown) < len(different))
    return " or ".join([*shown, *more])
