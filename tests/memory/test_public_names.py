from __future__ import annotations

import inspect

import pytest

import delegraph.memory
import delegraph.micro


@pytest.mark.parametrize("name", delegraph.memory.__all__)
def test_names_of_memory_are_there_and_documented(name):
    value = getattr(delegraph.memory, name)
    assert not inspect.ismodule(value)
    assert not callable(value) or value.__doc__


@pytest.mark.parametrize("name", delegraph.micro.__all__)
def test_names_of_micro_are_there_and_documented(name):
    value = getattr(delegraph.micro, name)
    assert not inspect.ismodule(value)
    assert value.__doc__


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="nonsense"):
        delegraph.memory.nonsense  # noqa: B018 - the access is the test
