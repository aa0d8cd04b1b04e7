from __future__ import annotations

from typing import Any

import pytest

from delegraph import Capabilities, Claim, SimpleDelegateInterface
from delegraph.delegation.delegate import DelegateFlags, DelegateOptions
from delegraph.delegation.driver import SimpleDelegate
from delegraph.errors import DelegateError


class Least(SimpleDelegateInterface):
    """Has what an author must write, and nothing else."""

    def name(self) -> str:
        return "least"

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> bool:
        return False

    def create_delegate_kernel_interface(self) -> Any:
        raise AssertionError("takes no node")


class Most(Least):
    """Overrides everything that has a default."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def capabilities(self) -> Capabilities:
        return Capabilities([Claim("ADD", "INT8")])

    def note(self) -> str:
        return "within 1 unit"

    def copy_from_buffer_handle(self, context: Any, tensor: Any) -> None:
        self.calls.append(("from", context, tensor))

    def copy_to_buffer_handle(self, context: Any, tensor: Any) -> None:
        self.calls.append(("to", context, tensor))

    def free_buffer_handle(self, context: Any, handle: int) -> None:
        self.calls.append(("free", context, handle))


def test_what_an_author_does_not_write_has_a_default() -> None:
    simple = Least()
    delegate = SimpleDelegate(simple)
    assert simple.delegate_options() == DelegateOptions()
    assert (delegate.name(), delegate.flags, delegate.note()) == ("least", DelegateFlags.NONE, "")
    assert delegate.capabilities() == Capabilities()
    delegate.free_buffer_handle(None, 1)  # type: ignore[arg-type]  # it does nothing


@pytest.mark.parametrize("copy", ["copy_from_buffer_handle", "copy_to_buffer_handle"])
def test_a_delegate_without_buffers_has_none_to_copy(copy: str) -> None:
    for delegate in (Least(), SimpleDelegate(Least())):
        with pytest.raises(DelegateError, match="delegate 'least' has no buffer to copy 't'"):
            getattr(delegate, copy)(None, "t")


def test_the_wrapped_object_is_asked_for_everything() -> None:
    simple = Most()
    delegate = SimpleDelegate(simple)
    assert (delegate.flags, delegate.note()) == (simple.flags(), "within 1 unit")
    assert delegate.capabilities() == simple.capabilities()
    wrapped: Any = delegate
    wrapped.copy_from_buffer_handle("c", "t")
    wrapped.copy_to_buffer_handle("c", "t")
    wrapped.free_buffer_handle("c", 7)
    assert simple.calls == [("from", "c", "t"), ("to", "c", "t"), ("free", "c", 7)]
