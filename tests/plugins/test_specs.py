from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph.errors import ArgumentError
from delegraph.plugins import CommandSpec, CustomOpSpec, DelegateSpec
from delegraph.plugins.plugin import is_ready


@pytest.mark.parametrize("kind", [DelegateSpec, CustomOpSpec, CommandSpec])
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name is '', expected"),
        ({"name": b"a"}, "name is b'a', expected"),
        ({"summary": None}, "'a': summary is None, expected one line of text"),
        ({"load": None}, "'a': load is None, expected a function"),
        ({"load": "module"}, "'a': load is 'module', expected a function"),
    ],
)
def test_every_spec_refuses_a_bad_name_summary_or_load(
    kind: Any, fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ArgumentError, match=f"{kind.__name__} {message}"):
        kind(**{"name": "a", "summary": "", "load": print, **fields})


@pytest.mark.parametrize("custom_ops", ["Flex*", ["Flex*"], ("Flex*", 1)])
def test_custom_ops_of_a_delegate_are_a_tuple_of_names(custom_ops: Any) -> None:
    with pytest.raises(ArgumentError, match=r"custom_ops is .*, expected a tuple of names"):
        DelegateSpec("a", "", print, custom_ops=custom_ops)


def test_what_says_that_a_delegate_is_ready_is_a_function() -> None:
    with pytest.raises(ArgumentError, match="is_ready is True, expected a function"):
        DelegateSpec("a", "", print, is_ready=True)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ArgumentError, match="load_compiling is 1, expected a function"):
        DelegateSpec("a", "", print, load_compiling=1)  # type: ignore[arg-type]  # wrong on purpose


def test_a_delegate_stands_in_the_middle_and_is_there_for_no_custom_op_by_default() -> None:
    spec = DelegateSpec("a", "", print)
    assert (spec.rank, spec.custom_ops, spec.options) == (0, (), None)


def test_a_delegate_is_ready_unless_its_own_check_says_otherwise_or_fails() -> None:
    assert is_ready(DelegateSpec("a", "", print))
    assert is_ready(DelegateSpec("a", "", print, is_ready=lambda: True))
    assert not is_ready(DelegateSpec("a", "", print, is_ready=lambda: False))
    assert not is_ready(DelegateSpec("a", "", print, is_ready=lambda: bool(1 / 0)))


def test_what_describes_a_custom_op_is_a_function() -> None:
    with pytest.raises(ArgumentError, match="describe is 'text', expected a function"):
        CustomOpSpec("a", "", print, describe="text")  # type: ignore[arg-type]  # wrong on purpose
    assert CustomOpSpec("a", "", print, describe=lambda options: {}).describe is not None


def test_a_class_in_the_place_of_load_is_refused() -> None:
    with pytest.raises(ArgumentError, match="load is the class Path, expected a function that imp"):
        DelegateSpec("a", "", Path)  # type: ignore[arg-type]  # the mistake
