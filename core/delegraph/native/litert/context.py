"""``DelegateContext`` for a subgraph of an official interpreter, made from its ``TfLiteContext``.

Nodes are copied while the delegate is applied, because the runtime moves them when it adds nodes.
Most of the runtime's functions do not work later, while kernels run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from delegraph.delegation.delegate import Delegate, DelegateParams, StopRequest
from delegraph.delegation.rejections import Rejection
from delegraph.errors import ArgumentError, DelegateError, OperatorError
from delegraph.graph.dtypes import NUMPY_DTYPES, OBJECT_TYPES, byte_size
from delegraph.graph.model import OperatorSpec
from delegraph.native import tensor_types
from delegraph.native.abi import DELEGATE_CODE, TfLiteDelegateParams, ints_at
from delegraph.native.litert.host import ForeignDelegate, Host
from delegraph.native.litert.model_alignment import NodeIdentity, align
from delegraph.native.litert.node_check import check_subgraph
from delegraph.native.litert.profile import ProfiledContext
from delegraph.native.litert.subgraph import LiteRtSubgraph
from delegraph.native.litert.tensors import LiteRtTensors, WorkingMemory, require_resizable
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import (
    CallableSubgraph,
    Eval,
    Node,
    OpContext,
    Registration,
    Scratch,
)
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.runtime.context import ModelContext
from delegraph.runtime.delegates.node_facts import Findings
from delegraph.schema.enums import BuiltinOperator, TensorType


class LiteRtContext(ModelContext, ProfiledContext):
    """The ``DelegateContext`` for one application of one delegate to one subgraph.

    Attributes:
        address: address of the ``TfLiteContext``.
        operators: mapping from a node index to the model's operator.
        native_tensors: the tensors, bound to the runtime's memory.
        has_buffer_handles: whether a delegate keeps values of tensors in its own buffers.
        prepared: outputs of kernels that were prepared earlier.
    """

    def __init__(self, address: int, host: Host, position: tuple[int, int] | None = None) -> None:
        """Read tensors, nodes and execution plan of the subgraph.

        Args:
            address: address of the ``TfLiteContext``.
            host: the delegate, with the interface for its contexts.
            position: index of the subgraph, and address of the first subgraph's context; None if
                unknown.
        """
        self.address = address
        self._native = LiteRtSubgraph(address)
        self._host: Host = host
        self._is_delegating, self.has_buffer_handles = True, False
        self._acquired: dict[int, LiteRtContext] = {}
        self.prepared: set[int] = set()
        index, self._primary = position or self._native.position(len(host.model.subgraphs))
        self._resources = host.resources(self._primary)
        super().__init__(host.model, host.model.subgraphs[index], host.cache_dir, self._resources)
        self.native_tensors = LiteRtTensors(address, self.spec.tensors)
        self.native_tensors.require_types_of(self.spec)
        self._plan = self._native.plan()
        self._nodes = {i: self._read_node(i) for i in range(max(self._plan, default=-1) + 1)}
        self.operators = self._aligned()
        self.native_tensors.refresh_all()

    @cached_property
    def findings(self) -> Findings:
        """Whether Delegraph's kernels find each node of the model well-formed, and if not, why.

        The nodes are checked for the shapes that tensors have at the first read of this property.
        """
        return check_subgraph(self, self.spec, self.operators, self._nodes)

    # -- reading the runtime -------------------------------------------------------------------

    def _read_node(self, index: int) -> tuple[Node, Registration]:
        native, kind = self._native.node(index)
        inputs, outputs = ints_at(native.inputs), ints_at(native.outputs)
        code = kind.builtin_code
        known = code in BuiltinOperator._value2member_map_
        builtin = (
            BuiltinOperator(code) if known else BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
        )
        is_named = builtin in (BuiltinOperator.CUSTOM, BuiltinOperator.DELEGATE)
        name = (kind.custom_name or b"").decode("utf-8", "replace") if is_named else ""
        registration = Registration(name or builtin.name, _refuse, builtin)
        node = Node(index, inputs, outputs)
        if code == DELEGATE_CODE:
            node.delegate = self._host.delegate_at(native.delegate) or ForeignDelegate(name)
            is_opaque = bool(kind.registration_external)  # then params are another struct
            if native.builtin_data and not is_opaque:
                params = TfLiteDelegateParams.from_address(native.builtin_data)
                node.options = self.params_of(params, node.delegate)
        return node, registration

    def params_of(self, params: Any, delegate: object | None) -> DelegateParams:
        """Return the partition that the C struct *params* describes, claimed by *delegate*."""
        return DelegateParams(
            delegate,
            ints_at(params.nodes_to_replace),
            ints_at(params.input_tensors),
            ints_at(params.output_tensors),
            self,
        )

    def _aligned(self) -> dict[int, OperatorSpec]:
        """Match the runtime's nodes with the file's operators; return each node's operator."""
        own = {i: found for i, found in self._nodes.items() if found[0].delegate is None}
        identities = [
            NodeIdentity(i, kind.builtin_code, kind.custom_name, node.inputs, node.outputs)
            for i, (node, kind) in own.items()
        ]
        operators = align(identities, self.spec)
        for index, operator in operators.items():
            native, registration = self._nodes[index]
            node = replace(
                Node.from_operator(operator),
                index=index,
                inputs=native.inputs,
                outputs=native.outputs,
            )
            self._nodes[index] = node, self._host.registration(operator, registration)
        return operators

    # -- description ---------------------------------------------------------------------------

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index."""
        return self.native_tensors.list

    @property
    def recommended_num_threads(self) -> int:
        """Number of threads that the user allows; -1 if the user has set none."""
        given = self._host.num_threads
        return self._native.recommended_num_threads if given is None else given

    @property
    def numerics(self) -> Numerics:
        """Official kernels, builtin or reference, that compute nodes without a delegate."""
        return self._host.numerics

    @property
    def custom_ops(self) -> Mapping[str, AnyCustomOp]:
        """Custom operators in Python for this model only, by name."""
        return self._host.custom_ops

    @property
    def cancellation(self) -> StopRequest | None:
        """Stop request for the running call; None if calls cannot be stopped."""
        return self._host.cancellation

    @property
    def memory_limit(self) -> MemoryLimit:
        """Limit that a kernel must check before it allocates memory itself."""
        return self._host.memory_limit

    @property
    def resources(self) -> MutableMapping[Any, Any]:
        """Resources of this delegate's kernels in one interpreter, separate from the runtime's."""
        return self._resources

    # -- nodes ---------------------------------------------------------------------------------

    @cached_property
    def refused_nodes(self) -> Mapping[int, Rejection]:
        """Nodes that no delegate may claim, with the reasons; see ``DelegateContext``."""
        return self.findings.rejections

    @cached_property
    def barred(self) -> Mapping[int, Rejection]:
        """Nodes that this delegate may not claim, with reasons such as a user's rule."""
        rules = self._host.barred(self.subgraph_index)
        kept_off = {i: rules[o.index] for i, o in self.operators.items() if o.index in rules}
        return {**kept_off, **self.refused_nodes}

    def get_execution_plan(self) -> tuple[int, ...]:
        """Return the node indices in execution order, from the time of the application."""
        return self._plan

    def get_node_and_registration(self, node_index: int) -> tuple[Node, Registration]:
        """Return a node and its registration; see ``DelegateContext``."""
        if node_index not in self._nodes:
            raise ArgumentError(f"no node {node_index}; the subgraph has {len(self._nodes)}")
        return self._nodes[node_index]

    def preview_delegate_partitioning(self, nodes: Sequence[int]) -> list[DelegateParams]:
        """Return the partitions that replacing *nodes* would give, in execution order."""
        self._require_delegating("partitions can be previewed")
        wanted = self._claimable(nodes)
        if not wanted:
            return []
        self._write_inputs()
        with self._native.previewed(wanted) as found:
            return [self.params_of(params, None) for params in found]

    def replace_node_subsets_with_delegate_kernels(
        self, registration: Registration, nodes: Sequence[int], delegate: object
    ) -> None:
        """Replace *nodes* by delegate nodes with *registration*; see ``DelegateContext``."""
        self._require_delegating("nodes can be replaced")
        wanted = self._claimable(nodes)
        if not wanted:
            return
        self._write_inputs()
        native, address = self._host.begin_replacing(registration, len(self._nodes))
        try:
            self._native.replace(native, wanted, address)
        finally:
            kernels = self._host.end_replacing()
        for kernel in kernels:
            if kernel.error is not None:
                raise kernel.error
        self._plan = self._native.plan()
        for index in range(len(self._nodes), max(self._plan, default=-1) + 1):
            self._nodes[index] = self._read_node(index)

    def _claimable(self, nodes: Sequence[int]) -> list[int]:
        """Return *nodes* without duplicates and without nodes that this delegate may not take.

        Raises:
            ArgumentError: a node is not in the plan; old runtimes would crash.
        """
        known = set(self._plan)
        for index in nodes:
            if index not in known:
                raise ArgumentError(f"node {index} is not in the execution plan")
        return [i for i in dict.fromkeys(map(int, nodes)) if i not in self.barred]

    def partition_failed(self, params: DelegateParams, error: DelegateError) -> Rejection:
        """Return a rejection of the partition *params*, or raise *error*, as the policy demands."""
        return self._host.partition_failed(self.subgraph_index, self.operators, params, error)

    def _write_inputs(self) -> None:
        """Write all nodes' inputs to the runtime, because a delegate may have changed them."""
        for index in self._plan:
            self._native.write_inputs(index, self._nodes[index][0].inputs)

    def _require_delegating(self, what: str) -> None:
        if not self._is_delegating:
            raise DelegateError(f"{what} only while a delegate is being applied")

    @contextmanager
    def delegating(self) -> Iterator[None]:
        """Context in which the delegate may claim nodes; claims outside of it are errors."""
        try:
            yield
        finally:
            self._is_delegating = False
            for index, other in self._acquired.items():
                other._is_delegating = False
                self._native.release(index)

    # -- other subgraphs -----------------------------------------------------------------------

    def acquire_subgraph_context(self, index: int) -> LiteRtContext:
        """Return the context of subgraph *index*; see ``DelegateContext``."""
        if index in self._acquired:
            return self._acquired[index]
        self._require_delegating("other subgraphs can be looked at")
        count = len(self._host.model.subgraphs)
        if not 0 <= index < count:
            raise ArgumentError(f"no subgraph {index}; the model has {count}")
        if index == self.subgraph_index:
            return self
        address = self._native.acquire(index)
        self._acquired[index] = LiteRtContext(address, self._host, (index, self._primary))
        return self._acquired[index]

    def mark_subgraph_as_delegation_skippable(self, index: int) -> None:
        """Raise an error: in LiteRT only C++ delegates can do this, not the C interface."""
        raise DelegateError("LiteRT lets only C++ delegates compute the subgraphs of others")

    def subgraph(self, index: int) -> CallableSubgraph:
        """Raise an error, because LiteRT itself runs the subgraphs that kernels call."""
        raise OperatorError("in LiteRT, a delegate's kernel cannot call another subgraph")

    # -- tensors -------------------------------------------------------------------------------

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set a tensor's shape; see ``OpContext.resize_tensor``."""
        dims = tuple(map(int, shape))
        if dims == tensor.shape and not tensor.is_dynamic:
            return
        require_resizable(tensor, dims)
        if tensor.type not in OBJECT_TYPES:
            self.memory_limit.require(byte_size(tensor.type, dims), repr(tensor))
        tensors = self.native_tensors
        self._require_room(tensor, dims)
        try:
            self._native.resize(tensors.address(tensor.index), dims)
        except DelegateError as error:
            raise OperatorError(f"{tensor!r} cannot become {list(dims)}: {error}") from error
        tensor.shape = dims
        if tensor.type is TensorType.STRING:
            tensor.data = np.empty(dims, object)
        elif tensor.is_dynamic and tensor.type not in OBJECT_TYPES:
            tensors.bind(tensor)

    def _require_room(self, tensor: Tensor, dims: tuple[int, ...]) -> None:
        """Raise an error if a tensor is in user memory that is too small for the shape *dims*.

        LiteRT does not compare the sizes before the first run, so a kernel could write beyond the
        memory.

        Raises:
            OperatorError: the memory is too small.
        """
        if tensor.index in self.prepared or tensor.type in OBJECT_TYPES:
            return
        native = self.native_tensors.native(tensor.index)
        if native.allocation_type == AllocationType.CUSTOM:
            needed = byte_size(tensor.type, dims)
            if needed > native.bytes:
                raise OperatorError(
                    f"{tensor!r} takes {needed} bytes, and its buffer was made for {native.bytes}: "
                    "ask for get_output_tensor_details() before buffers are made"
                )

    def set_dynamic(self, tensor: Tensor) -> None:
        """Declare that a tensor's shape is known only while invoking.

        If the runtime needs static shapes, the tensor gets its declared shape instead.

        Raises:
            OperatorError: the tensor is an output of the model, which must have a known shape.
        """
        if self._host.needs_static_shapes and tensor.index < len(self.spec.tensors):
            declared = self.spec.tensors[tensor.index]
            if -1 not in declared.shape_signature:
                self.resize_tensor(tensor, declared.shape)
                return
            if tensor.index in self.spec.outputs:
                raise OperatorError(
                    f"{tensor!r} is an output of the model, and its shape is known only while "
                    "invoking; CompiledModel has to know it before, for example by the shape "
                    "function of a custom operator"
                )
        if not tensor.is_dynamic:
            native = self.native_tensors.native(tensor.index)
            native.allocation_type, native.data = AllocationType.DYNAMIC, None
            tensor.make_dynamic()

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Return working memory of *shape* and *dtype* for the node that is being prepared."""
        return WorkingMemory(tuple(shape), np.dtype(dtype))

    def add_tensors(self, count: int) -> int:
        """Append *count* scalar FLOAT32 tensors; return the index of the first one."""
        self._require_delegating("tensors can be added")
        first = self._native.add_tensors(count) if count > 0 else len(self.native_tensors)
        for index in range(first, first + max(count, 0)):
            native = self.native_tensors.native(index)
            native.type = tensor_types.C_TYPES[TensorType.FLOAT32]
            native.allocation_type = AllocationType.ARENA_RW
        self.native_tensors.refresh_all()
        return first

    def set_tensor_type(self, tensor: Tensor, type: TensorType) -> None:
        """Set the element type of a tensor that a delegate added."""
        if tensor.index < len(self.spec.tensors):
            raise ArgumentError(f"{tensor!r} belongs to the model and keeps its type")
        if type not in tensor_types.C_TYPES:
            raise ArgumentError(f"{type.name} is no type of the C interface")
        self.native_tensors.native(tensor.index).type = tensor_types.C_TYPES[type]
        tensor.type, tensor.dtype, tensor.data = type, NUMPY_DTYPES[type], None

    def set_buffer_handle(self, tensor: Tensor, handle: int, delegate: Delegate) -> None:
        """Record that the buffer *handle* of *delegate* has the value of *tensor*."""
        native, address = self.native_tensors.native(tensor.index), self._host.address
        if native.delegate not in (None, address):
            raise DelegateError(f"{tensor!r} belongs to another delegate")
        if native.buffer_handle not in (-1, handle):
            delegate.free_buffer_handle(self, native.buffer_handle)
        native.delegate, native.buffer_handle = address, handle
        tensor.delegate, tensor.buffer_handle = delegate, handle
        self.has_buffer_handles = True
        self._host.keep_buffer(self, handle)


def _refuse(context: OpContext, node: Node) -> Eval:
    raise OperatorError("LiteRT computes its nodes itself")
