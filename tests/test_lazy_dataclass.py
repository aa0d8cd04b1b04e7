"""The decorator that does not compile makes what the standard one makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from delegraph import lazy_dataclass


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    notes: list[str] = lazy_dataclass.field(default_factory=list, compare=False, hash=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(self.x)


@lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    name: str = lazy_dataclass.field(default="a", repr=False, metadata={"help": "its name"})


@lazy_dataclass.dataclass
class Counter:
    value: int = 0
    tags: list[str] = lazy_dataclass.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Standard(Point):
    z: int = 3


@lazy_dataclass.dataclass(frozen=True, eq=False)
class Thing:
    data: bytes

    def __repr__(self) -> str:
        return "a thing"


def test_objects_have_their_fields_and_defaults() -> None:
    point = Point(1)
    assert (point.x, point.y, point.notes, Point.kind) == (1, 2, [], "point")
    assert point.notes is not Point(1).notes
    assert Named(1, name="b").name == "b"
    assert (Standard(1).z, Standard(1, 5).y) == (3, 5)
    with pytest.raises(ValueError, match="-1"):
        Point(-1)
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required .* 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Named(1, 2, [], "b")  # type: ignore[misc]


def test_equal_objects_are_of_one_class_with_equal_fields() -> None:
    assert Point(1) == Point(1, 2, ["note"]) != Point(2)
    assert Point(1) != Named(1)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert Thing(b"") != Thing(b"")
    assert hash(Thing(b""))
    assert Counter() == Counter(0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())


def test_texts_are_those_of_the_standard_library() -> None:
    assert repr(Named(1, name="b")) == "Named(x=1, y=2, notes=[])"
    assert repr(Thing(b"")) == "a thing"


def test_frozen_objects_stay_as_they_are() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        Point(1).x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del Point(1).x  # type: ignore[misc]
    counter = Counter()
    counter.value = 5
    assert counter.value == 5
    assert not hasattr(Point(1), "__dict__")


@pytest.mark.parametrize("record", [Point(1), Named(3, name="n"), Counter(4), Standard(1, z=9)])
def test_records_are_copied_and_known_to_the_standard_library(record: Any) -> None:
    assert copy.copy(record) == copy.deepcopy(record) == pickle.loads(pickle.dumps(record))
    assert dataclasses.is_dataclass(record)
    values = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    assert dataclasses.asdict(record) == values
    assert dataclasses.replace(record) == type(record)(**values)


def test_replace_changes_some_fields() -> None:
    assert lazy_dataclass.replace(Named(1), y=7, name="b") == Named(1, 7, name="b")
    assert lazy_dataclass.replace(Standard(1), z=4) == Standard(1, z=4)
    assert Named(1).__replace__(y=7) == Named(1, 7)  # for copy.replace, from Python 3.13 on
    with pytest.raises(TypeError, match="'depth'"):
        lazy_dataclass.replace(Point(1), depth=7)


def test_fields_keep_their_metadata_and_order() -> None:
    assert [field.name for field in dataclasses.fields(Named)] == ["x", "y", "notes", "name"]
    assert dataclasses.fields(Named)[-1].metadata == {"help": "its name"}
    assert Point.__match_args__ == ("x", "y", "notes")


def test_signatures_are_those_of_the_fields() -> None:
    @lazy_dataclass.dataclass(frozen=True)
    class Fresh:
        x: int
        y: str = "a"

    assert str(inspect.signature(Fresh)) == "(x: 'int', y: 'str' = 'a') -> None"


def test_nothing_is_compiled_for_few_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = []
    monkeypatch.setattr(
        lazy_dataclass, "exec", lambda *a: (sources.append(a[0]), exec(*a)), raising=False
    )

    @lazy_dataclass.dataclass(frozen=True, slots=True)
    class Fresh:
        x: int

        y: int = 2

    few = [Fresh(1) for _ in range(lazy_dataclass.FEW)]
    assert not sources
    assert Fresh(y=2, x=1) == Fresh(1) == few[0]
    assert len(sources) == 1


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, r"takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"x": 2}, "got multiple values for argument 'x'"),
        ((1,), {"z": 2}, "got an unexpected keyword argument 'z'"),
    ],
)
def test_first_objects_refuse_what_later_ones_refuse(
    values: tuple[int, ...], named: dict[str, int], message: str
) -> None:
    @lazy_dataclass.dataclass
    class Fresh:
        x: int
        y: int = 2

    with pytest.raises(TypeError, match=message):
        Fresh(*values, **named)


def test_first_objects_are_as_later_ones() -> None:
    @lazy_dataclass.dataclass(frozen=True, slots=True)
    class Fresh(Point):
        z: int = lazy_dataclass.field(default=3, kw_only=True)

    made = [Fresh(1, notes=["a"], z=each) for each in range(lazy_dataclass.FEW + 2)]
    assert [dataclasses.astuple(each) for each in made] == [
        (1, 2, ["a"], each) for each in range(len(made))
    ]
    with pytest.raises(ValueError, match="-1"):
        Fresh(-1)


def test_a_standard_dataclass_is_no_base() -> None:
    with pytest.raises(TypeError, match="Late extends Standard, a standard dataclass"):

        @lazy_dataclass.dataclass(frozen=True)
        class Late(Standard):
            w: int = 0
