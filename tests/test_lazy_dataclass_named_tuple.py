"""Named tuples that compile nothing are those of the standard library."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import pytest

from delegraph import lazy_dataclass


class Ours(lazy_dataclass.NamedTuple):
    """A point."""

    x: int
    y: int = 2
    notes: tuple[str, ...] = ()

    @property
    def norm(self) -> int:
        return abs(self.x) + abs(self.y)


class Standard(typing.NamedTuple):
    x: int
    y: int = 2
    notes: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("values", "named"),
    [((1,), {}), ((1, 3), {}), ((1, 3, ("a",)), {}), ((), {"x": 1}), ((1,), {"notes": ("a",)})],
)
def test_items_and_defaults_are_the_standard_ones(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    ours, standard = Ours(*values, **named), Standard(*values, **named)
    assert ours == standard
    assert hash(ours) == hash(standard)
    assert (ours.x, ours.y, ours.notes) == tuple(standard)
    assert ours._asdict() == standard._asdict()
    assert repr(ours) == repr(standard).replace("Standard", "Ours")


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1, 2, (), 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})],
)
def test_wrong_arguments_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    for kind in (Ours, Standard):
        with pytest.raises(TypeError):
            kind(*values, **named)
    with pytest.raises(TypeError):
        Ours._make([])
    with pytest.raises(TypeError):
        Ours(1)._replace(z=1)


def test_a_copy_has_other_values_and_the_same_class() -> None:
    point = Ours(-1)._replace(y=5)
    assert (point, point.norm, type(point)) == ((-1, 5, ()), 6, Ours)
    assert Ours._make([-1, 5, ()]) == point
    for copied in (pickle.loads(pickle.dumps(point)), copy.deepcopy(point)):
        assert (copied, type(copied)) == (point, Ours)


def test_fields_are_known_to_python() -> None:
    assert (Ours._fields, Ours._field_defaults) == (Standard._fields, Standard._field_defaults)
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Standard)
    assert not hasattr(Ours(1), "__dict__")
    with pytest.raises(AttributeError):
        Ours(1).x = 2  # type: ignore[misc]  # mypy knows that it is read-only
    match Ours(4):
        case Ours(x, y):
            assert (x, y) == (4, 2)
