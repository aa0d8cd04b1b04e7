"""The interface through which contexts use their delegate in an official interpreter."""

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
    """A delegate that does not belong to Delegraph, such as XNNPACK."""

    kernel_name: str

    def name(self) -> str:
        """Name of the delegate, taken from its nodes' kernel name."""
        return self.kernel_name


class FallibleKernel(Protocol):
    """A kernel that stores its error when C gives no way to report the failure."""

    error: BaseException | None


class BufferContext(DelegateContext, Protocol):
    """A context whose tensors may have buffers of the delegate."""

    address: int
    """Of the ``TfLiteContext``."""

    native_tensors: LiteRtTensors


class Host(ProfiledHost, Protocol):
    """The part of a delegate that its contexts use."""

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
        """Return a rejection for a failed partition; see ``DelegateContext``.

        Args:
            subgraph_index: which subgraph.
            operators: the model's operator of each node, by node index.
            params: the partition.
            error: what went wrong; it is raised where users do not accept that.
        """

    def delegate_at(self, address: int | None) -> object | None:
        """Return the Python delegate whose C struct has this address; None for others."""

    def keep_buffer(self, context: BufferContext, handle: int) -> None:
        """Record that a buffer belongs to a tensor of this subgraph, until it is freed."""

    def registration(self, operator: OperatorSpec, other: Registration) -> Registration:
        """Return Delegraph's registration of an operator, or *other* if there is none."""

    def begin_replacing(self, registration: Registration, first: int) -> tuple[Any, int]:
        """Return the C registration and delegate; new nodes are numbered from *first* on."""

    def end_replacing(self) -> Sequence[FallibleKernel]:
        """Return the kernels made since ``begin_replacing``."""
