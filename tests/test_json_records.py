from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.json_records import JsonRecord, from_json, to_json


class Level(Enum):
    ERROR = "error"


class Kind(IntEnum):
    CONV = 3


@dataclass(frozen=True)
class Plain:
    level: Level
    kind: Kind | None = None


@dataclass(frozen=True, eq=False)
class Everything(JsonRecord):
    json_properties: ClassVar = {"size": "size", "text": "__str__", "name": "upper"}

    name: str
    values: NDArray[np.int16]
    plain: tuple[Plain, ...]
    pair: tuple[int, str]
    seconds: float
    word: Literal["a", "b"]
    path: Path = field(metadata={"json_key": "file"})
    facts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    content: bytes = field(default=b"", metadata={"json_key": None})
    options: Any = field(default=None, metadata={"json_value": str, "json_read": float})

    @property
    def size(self) -> int:
        return self.values.size

    def upper(self) -> str:
        return self.name.upper()

    def __str__(self) -> str:
        return f"{self.name}!"


RECORD = Everything(
    "all",
    np.array([[1, 2]], np.int16),
    (Plain(Level.ERROR, Kind.CONV), Plain(Level.ERROR)),
    (1, "x"),
    2,
    "b",
    Path("some") / "file",
    {"ids": (1, 2)},
    frozenset("ba"),
    b"bytes",
    0.5,
)


def test_fields_become_keys_and_what_they_hold_json() -> None:
    assert json.loads(json.dumps(RECORD.to_json())) == {
        "name": "ALL",
        "values": [[1, 2]],
        "plain": [{"level": "error", "kind": "CONV"}, {"level": "error", "kind": None}],
        "pair": [1, "x"],
        "seconds": 2,
        "word": "b",
        "file": str(Path("some") / "file"),
        "facts": {"ids": [1, 2]},
        "features": ["a", "b"],
        "options": "0.5",
        "size": 2,
        "text": "all!",
    }


def test_an_object_comes_back_from_its_json() -> None:
    content = {**json.loads(json.dumps(RECORD.to_json())), "features": None}
    del content["features"]
    back = Everything.from_json(content)
    np.testing.assert_array_equal(back.values, RECORD.values)
    assert (back.values.dtype, back.name) == (np.dtype(np.int16), "ALL")
    for name in ("plain", "pair", "seconds", "word", "path", "facts", "options"):
        assert getattr(back, name) == getattr(RECORD, name)
    assert (back.content, back.features) == (b"", frozenset())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", 3, "3 is no str"),
        ("seconds", True, "True is no float"),
        ("word", "c", "'c' is no "),
        ("pair", [1], "argument 2 is shorter|longer"),
        ("plain", [{}], "missing 1 required positional argument: 'level'"),
        ("plain", [{"level": "fatal"}], "'fatal' is not a valid Level"),
        ("plain", [{"level": "error", "kind": 3}], "3 is no "),
        ("facts", {"ids": ["1"]}, "'1' is no int"),
    ],
)
def test_json_of_another_form_is_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Everything.from_json({**RECORD.to_json(), key: value})


def test_what_json_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes cannot be written as JSON"):
        to_json({"blob": b""})


def test_values_of_their_own_are_converted_as_well() -> None:
    values = {"x": np.float32(0.5), 2: PurePosixPath("a/b"), "kinds": [Kind.CONV]}
    assert to_json(values) == {"x": 0.5, "2": "a/b", "kinds": ["CONV"]}
    assert from_json(dict[str, Any], {"a": [1]}) == {"a": [1]}
