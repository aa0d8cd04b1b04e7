"""Interface of a delegate that its contexts in an official interpreter use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from delegraph.delegation.delegate import DelegateContext, DelegateParams, StopRequest
from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegateError
from delegraph.graph.model import Model, OperatorSpec
from delegraph.native.litert.profile import ProfiledHost
from delegraph.native.litert.tensors import LiteRtTensors
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import Registration


@dataclass(frozen=True, slots=True)
class ForeignDelegate:
    """A delegate that does not belong to Delegraph, such as XNNPACK."""

    kernel_name: str

    def name(self) -> str:
        """Return the name of the delegate, taken from its nodes' kernel name."""
        return self.kernel_name


class FallibleKernel(Protocol):
    """Interface of a kernel that stores its error where C cannot report a failure."""

    error: BaseException | None


class BufferContext(DelegateContext, Protocol):
    """Interface of a context whose tensors may have values in the delegate's own buffers."""

    address: int
    """Address of the ``TfLiteContext``."""

    native_tensors: LiteRtTensors


class Host(ProfiledHost, Protocol):
    """Interface of a delegate that its contexts (one for each subgraph) use."""

    model: Model
    numerics: Numerics
    custom_ops: Mapping[str, AnyCustomOp]
    """Custom operators in Python for this model only, by name."""

    address: int
    """Address of the delegate's C struct."""

    num_threads: int | None
    """Number of threads that the user allows; None if the runtime provides it."""

    memory_limit: MemoryLimit
    """Maximal number of bytes of the kernels' memory."""

    cancellation: StopRequest | None
    """Stop request for the running call; None if calls cannot be stopped."""

    needs_static_shapes: bool
    """Whether the runtime needs the shapes of the model's outputs before it invokes."""

    def barred(self, subgraph_index: int) -> Mapping[int, Rejection]:
        """Return the nodes of a subgraph that the user's rules forbid, with rejections."""

    cache_dir: Path | None
    """Folder for data that delegates compile; None means the user's cache folder."""

    def resources(self, primary: int) -> dict[Any, Any]:
        """Return the resources that the delegate's kernels share in one interpreter.

        *primary* is the address of the interpreter's first context.
        """

    def partition_failed(
        self,
        subgraph_index: int,
        operators: Mapping[int, OperatorSpec],
        params: DelegateParams,
        error: DelegateError,
    ) -> Rejection:
        """Return a rejection for a failed partition; see ``DelegateContext``.

        *error* is raised if the failure policy is ``"raise"``.
        """

    def delegate_at(self, address: int | None) -> object | None:
        """Return the Python delegate whose C struct is at *address*; None if there is none."""

    def keep_buffer(self, context: BufferContext, handle: int) -> None:
        """Record that the buffer *handle* belongs to a tensor of *context*, until it is freed."""

    def registration(self, operator: OperatorSpec, other: Registration) -> Registration:
        """Return Delegraph's implementation of *operator*, or *other* if Delegraph has none."""

    def begin_replacing(self, registration: Registration, first: int) -> tuple[Any, int]:
        """Begin to replace nodes; return a C registration and the address of the C delegate.

        The runtime's function that replaces nodes gets both results.

        Args:
            registration: implementation of the new delegate nodes.
            first: index of the first new node.
        """

    def end_replacing(self) -> Sequence[FallibleKernel]:
        """Return the kernels of the delegate nodes that were made since ``begin_replacing``."""
