"""A Delegraph delegate as an object for the official interpreter's ``experimental_delegates``."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from delegraph.delegation.delegate import Delegate, DelegateFlags, DelegateParams, StopRequest
from delegraph.delegation.incident import Incident
from delegraph.delegation.matched_rules import MatchedRules
from delegraph.delegation.rejections import Rejection
from delegraph.errors import ArgumentError, DelegateError, UnsupportedModelError
from delegraph.graph.model import Model, OperatorSpec
from delegraph.native.abi import (
    DELEGATE_CODE,
    TfLiteDelegate,
    TfLiteDelegateParams,
    TfLiteRegistration,
    TfLiteTensor,
    malloc,
)
from delegraph.native.litert import guard
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.failures import Failures
from delegraph.native.litert.host import BufferContext
from delegraph.native.litert.kernel import LiteRtKernel
from delegraph.native.litert.thunks import ADDRESSES, interned, register
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import Node, Registration
from delegraph.plugins.specs import Isolate
from delegraph.runtime.arguments import folder_of, model_of
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.delegates.requested_delegates import AnyDelegate, as_delegate, load_delegate
from delegraph.runtime.execution.profile import Profile
from delegraph.runtime.isolation.isolation import Isolation
from delegraph.runtime.op_resolver import OpResolver
from delegraph.runtime.options import FailurePolicy, Limits, OnFailure

AnyModel = str | os.PathLike[str] | bytes | Model
"""A model: the path of a ``.tflite`` file, its bytes, or a loaded model."""


def litert_delegate(
    delegate: AnyDelegate,
    options: Mapping[str, Any] | None = None,
    *,
    model: AnyModel,
    numerics: Numerics = "builtin",
    cache_dir: str | os.PathLike[str] | None = None,
    isolate: Isolate | None = None,
    timeout: float | None = None,
    on_failure: OnFailure | None = None,
) -> LiteRtDelegate:
    """Return a delegate for an official interpreter, from ``ai_edge_litert`` or its predecessors.

    ::

        from ai_edge_litert.interpreter import Interpreter

        delegate = litert_delegate("numba_cpu", model="mobilenet.tflite")
        interpreter = Interpreter("mobilenet.tflite", experimental_delegates=[delegate])

    The object may be used for several interpreters of that model. An exception of the delegate
    becomes a RuntimeError of the interpreter with the same text, and is stored as
    ``last_exception``; :class:`~delegraph.native.litert.interpreter.LiteRtInterpreter` raises the
    exception itself.

    Args:
        delegate: name of an installed delegate, or a delegate object.
        options: options of an installed delegate.
        model: the model that the interpreter will run; options of operators are read from it.
        numerics: kernels of the interpreter; ``"reference"`` means ``BUILTIN_REF``.
        cache_dir: folder for data that the delegate compiles; by default the user's cache folder.
        isolate: ``"process"`` runs the delegate in a child process; None means as its spec says.
        timeout: seconds that a kernel in a child process may take for an invoke; None means the
            limit of the delegate's spec.
        on_failure: ``"raise"`` makes the call fail. ``"fallback"``, the default of a delegate in a
            child process, lets Delegraph's kernels compute partitions on which the delegate fails;
            ``incidents`` has the failures. ``"shadow"`` also compares results; see
            ``FailurePolicy``.

    Raises:
        ArgumentError: delegate or model is missing, a delegate object has options, or
            ``on_failure`` is unknown.
        MalformedModelError: the model is damaged.
        PluginError: no installed delegate of this name can be used.
    """
    if options is not None:
        if not isinstance(delegate, str):
            raise ArgumentError("options need a delegate given by its name")
        chosen = load_delegate(delegate, options, isolate=isolate, timeout=timeout)
    else:
        chosen = as_delegate(delegate, Isolation(isolate, timeout))
    return LiteRtDelegate(
        chosen,
        loaded(model),
        numerics,
        cache_dir=cache_dir,
        policy=FailurePolicy(on_failure),
    )


def loaded(model: AnyModel, limits: Limits | None = None) -> Model:
    """Return the model of a path or of bytes; return a loaded model unchanged."""
    if isinstance(model, Model):
        return model
    given = limits or Limits()
    read = given.tables, given.memory, given.weights_dir
    if isinstance(model, bytes | bytearray | memoryview):
        return model_of(None, bytes(model), *read)
    return model_of(model, None, *read)


@dataclass(slots=True)
class Claims:
    """Nodes and partitions that a delegate claimed in one subgraph when it was last applied.

    Attributes:
        operators: mapping from a node index of the runtime to the model's operator.
        partitions: mapping from the index of each delegate node to the replaced nodes.
        plan: node indices in execution order, including this delegate's nodes.
        rejections: mapping from a node index to the reason why the node was rejected.
    """

    operators: Mapping[int, Any]
    partitions: list[tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]]
    plan: tuple[int, ...] = ()
    rejections: Mapping[int, Rejection] = field(default_factory=dict)


NO_CLAIMS = Claims({}, [])


class _Resources(dict[Any, Any]):
    """A dictionary that supports weak references and contains kernels' resources."""

    __slots__ = ("__weakref__",)


class LiteRtDelegate:
    """A Python delegate together with the C struct that LiteRT calls.

    The struct (56 bytes) is never freed, because an interpreter may use its address after this
    object was deleted. The struct contains a number by which C callbacks find this object if it
    still exists.

    Attributes:
        delegate: the delegate.
        model: the model that the interpreters run.
        numerics: kernels of the interpreters, builtin or reference.
        cache_dir: folder for data that the delegate compiles; None means the user's cache folder.
        address: address of the struct.
        rules: the user's rules for nodes of the model; None if there are none.
        last_exception: the exception that the delegate raised last, in any interpreter.
        claims: mapping from a subgraph to the claims there, in the interpreter to which the
            delegate was last applied.
        profile: profile that records its nodes; None if no profile is recorded.
        failures: its failure policy, and its failures so far.
        custom_ops: mapping from a name to a custom operator in Python, for this model only.
        num_threads: number of threads that the user allows, -1 if not set; None if the runtime
            provides it.
        cancellation: stop request for the running call; None if calls cannot be stopped.
        memory_limit: maximal number of bytes that kernels may allocate; by default the machine's
            memory.
        needs_static_shapes: whether the runtime needs the shapes of outputs before it invokes.
    """

    def __init__(
        self,
        delegate: Delegate,
        model: Model,
        numerics: Numerics = "builtin",
        rules: MatchedRules | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        policy: FailurePolicy | None = None,
        *,
        is_default: bool = False,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
    ) -> None:
        self.delegate = delegate
        self.model = model
        self.numerics = numerics
        self.rules = rules
        self.cache_dir = folder_of(cache_dir)
        self.last_exception: BaseException | None = None
        self.claims: dict[int, Claims] = {}
        self.profile: Profile | None = None
        self.failures = Failures(delegate, policy or FailurePolicy(), is_default=is_default)
        self._resources: WeakValueDictionary[int, _Resources] = WeakValueDictionary()
        self._buffers: dict[tuple[int, int], BufferContext] = {}  # keys are context and handle
        self._applying = _Applying()
        self.custom_ops = custom_ops or {}
        self.needs_static_shapes = False
        self.num_threads: int | None = None
        self.cancellation: StopRequest | None = None
        self.memory_limit = MemoryLimit.of_machine()
        self._resolver = OpResolver(custom_ops)
        self.address = malloc(ctypes.sizeof(TfLiteDelegate))
        ctypes.memset(self.address, 0, ctypes.sizeof(TfLiteDelegate))
        native = TfLiteDelegate.from_address(self.address)
        native.data_ = register(self)
        native.flags = int(delegate.flags & ~DelegateFlags.REQUIRE_PROPAGATED_SHAPES)  # called here
        for name in ("Prepare", "CopyFromBufferHandle", "CopyToBufferHandle", "FreeBufferHandle"):
            setattr(native, name, ADDRESSES[name])
        _by_address[self.address] = self

    @property
    def delegate_name(self) -> str:
        """Name of the delegate, or of its type if ``name()`` raises an error."""
        return delegate_name(self.delegate)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of the delegate after which Delegraph's kernels replaced it."""
        return self.failures.incidents.all()

    def _get_native_delegate_pointer(self) -> int:
        """Return the address of the C struct, which an interpreter requests when constructed.

        Raises:
            UnsupportedRuntimeError: the calling runtime has unknown structs.
        """
        guard.require_known(sys._getframe(1).f_globals)
        return self.address

    # -- what C calls, by way of the thunks ----------------------------------------------------

    def apply(self, context: int) -> None:
        """Apply the delegate to the subgraph whose ``TfLiteContext`` is at address *context*."""
        seen = LiteRtContext(context, self)
        claims = Claims(seen.operators, [])
        self.claims[seen.subgraph_index] = claims
        self._applying.now.append(_Replacing(context, seen, claims))
        try:
            with seen.delegating():
                self.delegate.prepare(seen)
        finally:
            self._applying.now.pop()
        claims.plan = seen.get_execution_plan()
        claims.rejections = {**self.delegate.rejections(), **seen.barred}

    def new_kernel(self, context: int, params: int) -> LiteRtKernel:
        """Return a new delegate node's kernel; *context* and *params* are C structs' addresses."""
        replacing = next(r for r in reversed(self._applying.now) if r.address == context)
        return replacing.new_kernel(self, params)

    def copy(self, direction: str, context: int, handle: int, tensor: int) -> None:
        """Copy a tensor ``"from"`` or ``"to"`` buffer *handle*; *context*, *tensor*: addresses."""
        seen = self._buffers.get((context, handle))
        if seen is None:
            raise ArgumentError(f"delegate {self.delegate_name!r} has no buffer {handle}")
        tensors = seen.native_tensors
        index = (tensor - tensors.base) // ctypes.sizeof(TfLiteTensor)
        found = tensors.list[index]
        tensors.bind(found)
        found.buffer_handle = handle
        if direction == "from":
            self.delegate.copy_from_buffer_handle(seen, found)
        else:
            self.delegate.copy_to_buffer_handle(seen, found)

    def free_buffer_handle(self, context: int, handle: int) -> None:
        """Free the delegate's buffer *handle* in the subgraph whose C context is at *context*."""
        seen = self._buffers.pop((context, handle), None)
        if seen is not None:
            self.delegate.free_buffer_handle(seen, handle)

    # -- what contexts need --------------------------------------------------------------------

    def barred(self, subgraph_index: int) -> Mapping[int, Rejection]:
        """Return the nodes of a subgraph that the user's rules forbid to this delegate."""
        return {} if self.rules is None else self.rules.barred(subgraph_index, self.delegate_name)

    def resources(self, primary: int) -> dict[Any, Any]:
        """Return one interpreter's resources; *primary* is the address of its first C context."""
        return self._resources.setdefault(primary, _Resources())

    def forget_resources(self) -> None:
        """Clear the objects that kernels have stored or shared, in all interpreters.

        Contexts and nodes refer to each other, so the objects would otherwise exist until the
        garbage collector runs.
        """
        for resources in list(self._resources.values()):
            resources.clear()

    def partition_failed(
        self,
        subgraph_index: int,
        operators: Mapping[int, OperatorSpec],
        params: DelegateParams,
        error: DelegateError,
    ) -> Rejection:
        """Return a rejection for the failed partition *params*, or raise *error*; see ``Host``."""
        return self.failures.partition_failed(subgraph_index, operators, params, error)

    def delegate_at(self, address: int | None) -> object | None:
        """Return the Python delegate whose C struct is at *address*; None if there is none."""
        found = _by_address.get(address or 0)
        return None if found is None else found.delegate

    def keep_buffer(self, context: BufferContext, handle: int) -> None:
        """Record that the delegate's buffer *handle* belongs to *context*, until it is freed."""
        self._buffers[context.address, handle] = context

    def registration(self, operator: OperatorSpec, other: Registration) -> Registration:
        """Return Delegraph's implementation of *operator*; *other* if there is none."""
        try:
            return self._resolver.resolve(operator)
        except UnsupportedModelError:
            return other

    def begin_replacing(self, registration: Registration, first: int) -> tuple[Any, int]:
        """Begin to replace nodes; return the C registration and the address of the C delegate.

        *first* is the index of the first new node; see ``Host``.
        """
        replacing = self._applying.now[-1]
        replacing.registration, replacing.next_index, replacing.kernels = registration, first, []
        return _native_registration(registration.name), self.address

    def end_replacing(self) -> list[LiteRtKernel]:
        """Return the kernels that were made since ``begin_replacing``; see ``Host``."""
        return self._applying.now[-1].kernels


_by_address: WeakValueDictionary[int, LiteRtDelegate] = WeakValueDictionary()


@dataclass(slots=True)
class _Replacing:
    """State while nodes are replaced by a delegate's nodes: their kernels, and the next index."""

    address: int
    context: LiteRtContext
    claims: Claims
    registration: Registration | None = None
    next_index: int = 0
    kernels: list[LiteRtKernel] = field(default_factory=list)

    def new_kernel(self, delegate: LiteRtDelegate, params: int) -> LiteRtKernel:
        """Return the kernel of the next partition; *params* is the address of its description."""
        assert self.registration is not None
        native = TfLiteDelegateParams.from_address(params)
        found: DelegateParams = self.context.params_of(native, delegate.delegate)
        node = Node(
            self.next_index,
            found.input_tensors,
            found.output_tensors,
            options=found,
            delegate=delegate.delegate,
        )
        registration = delegate.failures.guarded(self.registration)
        kernel = LiteRtKernel(delegate, self.context, registration, node)
        self.next_index += 1
        self.kernels.append(kernel)
        self.claims.partitions.append(
            (node.index, found.nodes_to_replace, node.inputs, node.outputs)
        )
        kernel.init()
        return kernel


class _Applying(threading.local):
    """Delegates that are being applied by the present thread, the innermost one last."""

    def __init__(self) -> None:
        self.now: list[_Replacing] = []


def _native_registration(name: str) -> Any:
    return TfLiteRegistration(
        init=ADDRESSES["init"],
        free=ADDRESSES["free"],
        prepare=ADDRESSES["prepare"],
        invoke=ADDRESSES["invoke"],
        builtin_code=DELEGATE_CODE,
        custom_name=interned(name),
        version=1,
    )
