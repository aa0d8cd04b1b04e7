"""Declares the abilities of a delegate: operators, types, features and tolerances.

The conformance kit tries everything that a delegate claims here. The shadow policy compares results
within the tolerances. ``Capabilities.check`` decides from the claims whether a node is supported,
and gives the reason if not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cache
from itertools import product

from delegraph.delegation.node_features import node_features
from delegraph.delegation.node_traits import NO_ACTIVATION, NodeTraits
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.tolerance import Tolerance
from delegraph.delegation.widening import Widening, present_widening
from delegraph.errors import ArgumentError, close_names
from delegraph.json_records import JsonRecord
from delegraph.lazy_dataclass import dataclass, field
from delegraph.log import Logger
from delegraph.operators.registration import Node, OpContext, Registration
from delegraph.operators.roles import operands, roles_of
from delegraph.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType

logger = Logger(__name__)

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
"""Features that a claim may name, with a description of each."""

_DEFAULT_TOLERANCES = {
    TensorType.FLOAT16: Tolerance(1e-2, 1e-3),
    TensorType.BFLOAT16: Tolerance(5e-2, 1e-2),
    TensorType.FLOAT32: Tolerance(1e-4, 1e-5),
    TensorType.FLOAT64: Tolerance(1e-9, 1e-12),
    TensorType.COMPLEX64: Tolerance(1e-4, 1e-5),
    TensorType.COMPLEX128: Tolerance(1e-9, 1e-12),
}


_MOST_SHOWN = 12
"""Largest number of operators or types in a reason; a delegate may claim a hundred."""


@dataclass(frozen=True, slots=True)
class Claim(JsonRecord):
    """Operators that a delegate supports, with the supported types, versions and features.

    >>> print(Claim("CONV_2D", "FLOAT32", "broadcast", weights=["INT8", "INT4"], versions=(1, 5)))
    CONV_2D: FLOAT32; weights INT8, INT4; versions 1-5; broadcast

    Attributes:
        operators: names such as ``"ADD"``; custom operators by their custom code.
        types: names of the TensorTypes that operands may have, except operands whose role is in
            *roles*. Biases and indices count as operands. Empty means all types of the operator.
        features: names of :data:`FEATURES` that nodes may have.
        roles: mapping from a role to the types that its operands may have: ``weights="INT8"``. The
            roles of each operator are in ``delegraph.operators.roles``.
        versions: first and last version of the operators; None for all versions.
        activations: activation functions that may be fused, besides ``NONE``. The feature
            ``"activation"`` allows all.
        tolerance: largest error of results of these operators; None for the tolerance of their
            types.

    Raises:
        ArgumentError: a name does not exist, an operator lacks a role, or versions are in the wrong
            order.
    """

    operators: tuple[str, ...]
    types: tuple[str, ...] = field(metadata={"json_value": lambda types: types or None})
    features: frozenset[str]
    roles: tuple[tuple[str, tuple[str, ...]], ...] = field(metadata={"json_value": dict})
    versions: tuple[int, int] | None
    activations: tuple[str, ...]
    tolerance: Tolerance | None

    def __init__(
        self,
        operators: Iterable[str] | str,
        types: Iterable[str] | str = (),
        *features: str,
        versions: tuple[int, int] | None = None,
        activations: Iterable[str] | str = (),
        tolerance: Tolerance | None = None,
        **roles: Iterable[str] | str,
    ) -> None:
        values = {
            "operators": _names(operators),
            "types": _names(types),
            "features": frozenset(features),
            "roles": tuple((role, _names(given)) for role, given in roles.items()),
            "versions": versions,
            "activations": _names(activations),
            "tolerance": tolerance,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def covers(self, form: NodeTraits, features: Set[str] = frozenset()) -> bool:
        """Whether the claim says that the delegate supports a node of this form and features.

        Args:
            form: operator, types, version and fused activation of the node.
            features: names of the node's unusual properties, such as ``"broadcast"``.
        """
        return (
            form.operator in self.operators
            and self.misfit(form) is None
            and features - {"activation"} <= self.features  # the form has the activation's kind
        )

    def misfit(self, form: NodeTraits) -> int | None:
        """Number of a node's first property that the claim does not allow; None if it allows all.

        Properties are numbered in this order: each operand's type, the version, the activation.
        """
        fits = [not self.types_of(role) or type in self.types_of(role) for role, type in form.types]
        first, last = self.versions or (form.version, form.version)
        fits += [first <= form.version <= last, self.fuses(form.activation)]
        return None if all(fits) else fits.index(False)

    def types_of(self, role: str) -> tuple[str, ...]:
        """Return the types that operands of a role may have; empty if all types are allowed."""
        return dict(self.roles).get(role, self.types)

    def fuses(self, activation: str) -> bool:
        """Whether the claim allows an activation function to be fused."""
        named = (NO_ACTIVATION, *self.activations)
        return activation in named or "activation" in self.features

    def widened(self, by: Widening) -> Claim:
        """Return a copy of the claim with the additions *by*.

        Types are added for all operands, including each role that the claim names.
        """
        first, last = self.versions or (0, 0)
        values = {
            "operators": (*self.operators, *by.operators),
            "types": self.types and (*self.types, *by.types),
            "features": self.features | {*by.features},
            "roles": by.added_to(self.roles, self.types),
            "versions": self.versions and (min([first, *by.versions]), max([last, *by.versions])),
            "activations": (*self.activations, *by.activations),
            "tolerance": self.tolerance,
        }
        claim: Claim = object.__new__(Claim)
        for name, value in values.items():
            object.__setattr__(claim, name, value)
        return claim

    @property
    def form(self) -> str:
        """Text of the claim, but without its operators: ``FLOAT32; weights INT8; versions 1-5``."""
        types = [", ".join(self.types)] if self.types else []
        roles = [f"{role} {', '.join(types)}" for role, types in self.roles]
        versions = [] if self.versions is None else [f"versions {_range(self.versions)}"]
        fused = [f"activations {', '.join(self.activations)}"] if self.activations else []
        features = [", ".join(sorted(self.features))] if self.features else []
        own = [] if self.tolerance is None else [f"tolerance {self.tolerance}"]
        return "; ".join([*types, *roles, *versions, *fused, *features, *own])

    def __str__(self) -> str:
        return f"{', '.join(self.operators)}: {self.form}"

    def _check(self) -> None:
        for name in (*self.types, *(name for _, types in self.roles for name in types)):
            if name not in TensorType.__members__:
                raise self._error(_no_name("TensorType", name, TensorType.__members__))
        for name in self.activations:
            if name not in ActivationFunctionType.__members__:
                functions = ActivationFunctionType.__members__
                raise self._error(_no_name("activation function", name, functions))
        unknown = sorted(self.features - FEATURES.keys())
        if unknown:
            raise self._error(f"no feature {unknown[0]!r}; there are: {', '.join(FEATURES)}")
        if not self.operators or not (self.types or any(types for _, types in self.roles)):
            raise ArgumentError("a claim names at least one operator and one type")
        for name in self.operators:
            if name not in BuiltinOperator.__members__:
                _warn_of_misspelling(name)
        for role, operator in product(dict(self.roles), self.operators):
            if role not in roles_of(operator):
                known = ", ".join(roles_of(operator))
                raise self._error(f"{operator} has no operand {role!r}; there are: {known}")
        if self.versions is not None and self.versions[0] > self.versions[1]:
            raise self._error(f"versions {self.versions} are not in order")

    def _error(self, message: str) -> ArgumentError:
        return ArgumentError(f"claim of {self.operators}: {message}")


def _no_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return the error text for an unknown *name*, with similar known names or else all of them."""
    close = close_names(name, known)
    names = f"close names: {', '.join(close)}" if close else f"there are: {', '.join(known)}"
    return f"no {what} {name!r}; {names}"


_TENSORFLOW = "Flex"
"""Prefix of the names of TensorFlow's operators, many of which are builtin operators, too."""


@cache
def _warn_of_misspelling(name: str) -> None:
    """Log, once, that a claimed custom operator is named almost like a builtin operator."""
    close = close_names(name, BuiltinOperator.__members__, least=0.85)
    if close and not name.startswith(_TENSORFLOW):
        logger.warning(
            "a claim names operator %r, which only a custom operator can be: the builtin operator "
            "is %s",
            name,
            " or ".join(close),
        )


@dataclass(frozen=True, slots=True)
class Capabilities(JsonRecord):
    """All claims of a delegate; empty when the delegate declares nothing.

    >>> Capabilities(
    ...     [Claim(["ADD", "SUB"], "FLOAT32", "broadcast")],
    ...     tolerance={"FLOAT32": Tolerance(relative=1e-6)},
    ... ).tolerance_of(TensorType.FLOAT32)
    Tolerance(relative=1e-06, absolute=0.0)

    Attributes:
        claims: the claims of the delegate.
        tolerance: mapping from the name of a TensorType to its tolerance. By default integers,
            strings and BOOL are exact, and floats may be off by the usual rounding of a few
            operations.
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
                known = TensorType.__members__
                raise ArgumentError(f"tolerance: {_no_name('TensorType', name, known)}")

    def tolerance_of(self, type: TensorType, form: NodeTraits | None = None) -> Tolerance:
        """Return the tolerance for results of a type.

        Args:
            type: type of the result.
            form: form of the node that computes the result; the first claim that names its operator
                may have a tolerance of its own.
        """
        claims = () if form is None else (claim for claim in self.claims if claim.covers(form))
        special = (claim.tolerance for claim in claims if claim.tolerance is not None)
        given = next(special, self.tolerance.get(type.name))
        return _DEFAULT_TOLERANCES.get(type, Tolerance()) if given is None else given

    def covers(self, form: NodeTraits, features: Set[str] = frozenset()) -> bool:
        """Whether one claim allows an operator of this form with all these features.

        Args:
            form: operator, types, version and fused activation of the node.
            features: names of the node's unusual properties, such as ``"broadcast"``.
        """
        return any(claim.covers(form, features) for claim in self._present_claims())

    def check(self, registration: Registration, node: Node, context: OpContext) -> bool | Rejection:
        """Return True when a claim covers the node's form, else the reason for the rejection.

        The rejection names the property in which the node differs from the best matching claims.
        Only :meth:`check_features` checks features.
        """
        name = registration.name
        if registration.builtin_code == BuiltinOperator.DELEGATE:
            return Rejection("op", actual=f"delegate node of {name}", expected=self._operators())
        claims = [claim for claim in self._present_claims() if name in claim.operators]
        if not self.claims:
            return Rejection("op", "it claims nothing: write capabilities()", actual=name)
        if not claims:
            return Rejection("op", actual=name, expected=self._operators())
        form = NodeTraits.of(name, node, context.tensors)
        misfits = {claim: claim.misfit(form) for claim in claims}
        found = [position for position in misfits.values() if position is not None]
        if len(found) < len(misfits):
            return True
        nearest = [claim for claim, position in misfits.items() if position == max(found)]
        tensors = [index for _, index in operands(name, node)]
        return _refusal(form, max(found), nearest, tensors)

    def check_features(
        self, registration: Registration, node: Node, context: OpContext
    ) -> bool | Rejection:
        """Return True when a claim covers the node's form and all its features, else a rejection.

        The check uses the tensors' present shapes. It ignores the features ``subgraph`` and
        ``extreme-values``.
        """
        form = NodeTraits.of(registration.name, node, context.tensors)
        features = sorted(node_features(registration.name, node, context.tensors))
        if self.covers(form, {*features}):
            return True
        lacking = [name for name in features if not self.covers(form, {name})] or features
        found = " and ".join(f"{name} ({FEATURES[name]})" for name in lacking)
        return Rejection("features", f"{registration.name} with {found} is not claimed")

    def _present_claims(self) -> Iterable[Claim]:
        by = present_widening()
        return self.claims if by is None else [claim.widened(by) for claim in self.claims]

    def _operators(self) -> str:
        *names, last = _different(op for claim in self.claims for op in claim.operators) or [""]
        return f"{', '.join(names)} or {last}" if names else last


def _refusal(
    form: NodeTraits, position: int, claims: Iterable[Claim], tensors: Sequence[int]
) -> Rejection:
    """Return the rejection of a node for the one property that no claim allows.

    Args:
        form: operator, types, version and activation of the node.
        position: number of the differing property, as :meth:`Claim.misfit` returns it.
        claims: the claims that allow all properties before it.
        tensors: the node's operands.
    """
    if position < len(tensors):
        role, actual = form.types[position]
        expected = _different(name for claim in claims for name in claim.types_of(role))
        return _reason("dtype", role, actual, expected, tensors[position])
    if position == len(tensors):
        ranges = _different(_range(claim.versions) for claim in claims if claim.versions)
        return _reason("version", "version", str(form.version), ranges)
    fused = _different(name for claim in claims for name in (NO_ACTIVATION, *claim.activations))
    return _reason("activation", "activation", form.activation, fused)


def _reason(
    constraint: str, what: str, actual: str, claimed: Sequence[str], tensor: int | None = None
) -> Rejection:
    """Return a rejection with a message like ``weights are INT8; claimed are FLOAT32, FLOAT16``.

    Args:
        constraint: property that the claim limits, such as ``dtype`` or ``version``.
        what: the thing that was compared, such as ``weights``.
        actual: its value in the model.
        claimed: the values that the delegate claims.
        tensor: index of the tensor that the rejection is about; None if it is about no tensor.
    """
    is_plural = what.endswith("s") and not what.endswith(("bias", "axis"))
    expected = ", ".join(claimed)
    message = (
        f"{what} {'are' if is_plural else 'is'} {actual}; "
        f"claimed {'are' if len(claimed) > 1 else 'is'} {expected}"
    )
    return Rejection(constraint, message, actual, expected, tensor)


def _names(given: Iterable[str] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _range(versions: tuple[int, int]) -> str:
    first, last = versions
    return str(first) if first == last else f"{first}-{last}"


def _different(names: Iterable[str]) -> list[str]:
    """Return the distinct names for a message; a long list is cut and ends with a count.

    >>> _different(["ADD", "SUB", "ADD"]), _different(map(str, range(20)))[-2:]
    (['ADD', 'SUB'], ['7', '12 others'])
    """
    different = list(dict.fromkeys(names))
    shown = different if len(different) <= _MOST_SHOWN else different[: _MOST_SHOWN - 4]
    return [*shown, *[f"{len(different) - len(shown)} others"] * (len(shown) < len(different))]
