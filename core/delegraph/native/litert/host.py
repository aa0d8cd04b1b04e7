"""What the contexts of one delegate in an official interpreter need from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from delegraph.delegation.delegate import DelegateContext, DelegateParams
from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegateError
from delegraph.graph.model import Model, OperatorSpec
from delegraph.native.litert.profile import ProfiledHost
from delegraph.native.litert.tensors import LiteRtTensors
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import Registration


@dataclass(frozen=True, slots=True)
class ForeignDelegate:
    """A delegate that is none of ours, such as XNNPACK."""

    kernel_name: str

    def name(self) -> str:
        """Name that its nodes have."""
        return self.kernel_name


class FallibleKernel(Protocol):
    """A kernel that may have failed where C does not take no for an answer."""

    error: BaseException | None


class BufferContext(DelegateContext, Protocol):
    """A context in which a delegate may keep values of tensors in buffers of its own."""

    address: int
    """Of the ``TfLiteContext``."""

    native_tensors: LiteRtTensors


class Host(ProfiledHost, Protocol):
    """A delegate, as its contexts see it."""

    model: Model
    numerics: Numerics
    address: int
    """Of the delegate's C struct."""

    def barred(self, subgraph_index: int) -> Mapping[int, Rejection]:
        """Return the model's nodes that the user's rules keep from the delegate, and which rule."""

    cache_dir: Path | None
    """Where delegates keep what they compile; None for the user's own folder."""

    def resources(self, primary: int) -> dict[Any, Any]:
        """Resources that the delegate's kernels share in the interpreter with an address."""

    def partition_failed(
        self,
        subgraph_index: int,
        operators: Mapping[int, OperatorSpec],
        params: DelegateParams,
        error: DelegateError,
    ) -> Rejection:
        """Return why a partition is left; see ``DelegateContext``.

        Args:
            subgraph_index: which subgraph.
            operators: the model's operator of each node, by node index.
            params: the partition.
            error: what went wrong; it is raised where users do not accept that.
        """

    def delegate_at(self, address: int | None) -> object | None:
        """Return the delegate of ours whose C struct is there; None for others."""

    def keep_buffer(self, context: BufferContext, handle: int) -> None:
        """Remember that a buffer belongs to a tensor of this subgraph, until it is freed."""

    def registration(self, operator: OperatorSpec, other: Registration) -> Registration:
        """Return Delegraph's implementation of an operator; *other* where there is none."""

    def begin_replacing(self, registration: Registration, first: int) -> tuple[Any, int]:
        """Return the C registration and delegate; new nodes are numbered from *first* on."""

    def end_replacing(self) -> Sequence[FallibleKernel]:
        """Return the kernels made since."""
