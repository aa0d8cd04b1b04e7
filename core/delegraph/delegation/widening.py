"""Hypothetical additions to all claims, which show the nodes that wider claims would cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from delegraph.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Widening:
    """Additions to all claims, to find out which nodes a delegate would claim with them.

    >>> print(Widening(activations=("RELU6",)))
    activations RELU6
    >>> print(Widening(types=("INT8", "INT32")).joined(Widening(activations=("RELU6",))))
    types INT8, INT32 and activations RELU6
    >>> print(Widening(operators=("MEAN",), roles=(("axis", "INT32"),)))
    MEAN with axis="INT32"

    Attributes:
        operators: names of further operators.
        types: names of further types that operands may have.
        roles: further types that operands of one role may have: role and name of the type.
        versions: further versions of the operators.
        activations: further activation functions that may be fused.
        features: further features that nodes may have.
    """

    operators: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    activations: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        parts = {
            "types ": self.types,
            "": [f'{role}="{type}"' for role, type in self.roles],
            "version ": self.versions,
            "activations ": self.activations,
            "features ": self.features,
        }
        properties = " and ".join(
            f"{kind}{', '.join(map(str, names))}" for kind, names in parts.items() if names
        )
        return " with ".join(filter(None, [", ".join(self.operators), properties]))

    def joined(self, other: Widening) -> Widening:
        """Return these additions together with the additions *other*."""
        return Widening(
            self.operators + other.operators,
            self.types + other.types,
            self.versions + other.versions,
            self.activations + other.activations,
            self.features + other.features,
            self.roles + other.roles,
        )

    def added_to(
        self, roles: Iterable[tuple[str, tuple[str, ...]]], types: tuple[str, ...]
    ) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the *roles* of a claim, whose other operands have *types*, with these additions.

        A role without types stays so: all are allowed.
        """
        found = {role: own and (*own, *self.types) for role, own in roles}
        for role, type in self.roles:
            own = found.get(role, types and (*types, *self.types))
            found[role] = own and (*own, type)
        return tuple(found.items())


_PRESENT: ContextVar[Widening | None] = ContextVar("delegraph_widening", default=None)


@contextmanager
def widened(by: Widening) -> Iterator[None]:
    """Context in which delegates answer as if all their claims were extended by *by*."""
    token = _PRESENT.set(by)
    try:
        yield
    finally:
        _PRESENT.reset(token)


def present_widening() -> Widening | None:
    """Return the additions to all claims; None outside of :func:`widened`."""
    return _PRESENT.get()
