"""Nodes as kernels see them."""

from __future__ import annotations

import copy

import pytest

from delegraph.operators.registration import Node


@pytest.mark.parametrize(
    ("theirs", "ours"), [("builtin_data", "options"), ("custom_initial_data", "custom_options")]
)
def test_a_field_of_tflite_is_told_as_the_attribute_here(theirs: str, ours: str) -> None:
    node = copy.copy(Node(0, (1,), (2,)))
    with pytest.raises(AttributeError, match=f"no attribute '{theirs}'; use node.{ours}$"):
        getattr(node, theirs)
    with pytest.raises(AttributeError, match=r"no attribute 'colour'$"):
        _ = node.colour  # type: ignore[attr-defined]
