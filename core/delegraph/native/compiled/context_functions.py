"""Implementations of all ``TfLiteContext`` functions; unsupported ones report an error.

Functions for microcontrollers, which are null pointers in the full runtime, report and return an
error. But ``AllocatePersistentBuffer``, ``ResizeTensorExplicit`` and ``GetTensor`` work.

Source:
    tflite/core/c/common.h; tflite/core/subgraph.cc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from delegraph.delegation.delegate import DelegateContext, DelegateParams
from delegraph.errors import ArgumentError, OperatorError
from delegraph.native.abi import (
    CONTEXT_FUNCTIONS,
    TfLiteDelegateParams,
    TfLiteRegistration,
    TfLiteStatus,
    callback,
    ints_at,
    libc,
    malloc_int_array,
)
from delegraph.native.compiled.context import NativeContext, Owner
from delegraph.native.compiled.external_kernel import KernelFunctions, kernel_registration
from delegraph.native.compiled.nodes import params_struct
from delegraph.native.compiled.report_error import report_error_callback

Function = Callable[..., Any]

_contexts: WeakValueDictionary[int, NativeContext] = WeakValueDictionary()
"""Mapping from the address of a struct to its context, as long as the subgraph exists."""

_FUNCTIONS: dict[str, Function] = {}


def _write_functions(native: NativeContext) -> None:
    """Fill every function pointer of the C struct of *native*, and register its address."""
    for name, function in _callbacks().items():
        setattr(native.struct, name, ctypes.cast(function, ctypes.c_void_p).value)
    _contexts[native.address] = native


Contexts = WeakKeyDictionary[DelegateContext, NativeContext]
"""Mapping from a subgraph's context to the native context of one owner (delegate)."""


def context_of(owner: Owner, made: Contexts, context: DelegateContext) -> NativeContext:
    """Return the ``TfLiteContext`` of a subgraph for *owner*; create it at the first request.

    Args:
        owner: compiled delegate or custom operator whose C code gets the context.
        made: contexts that exist already, by subgraph; a new one is added.
        context: Delegraph's context of the subgraph.
    """
    found = made.get(context)
    if found is None:
        found = made[context] = NativeContext(owner, context)
        _write_functions(found)
    return found


@cache
def _callbacks() -> dict[str, Any]:
    """Return the C functions, created once per process, as delegates may keep their addresses."""
    made = {
        name: callback(signature)(_contained(_FUNCTIONS[name], _failed(signature)))
        for name, signature in CONTEXT_FUNCTIONS.items()
        if name != "ReportError"
    }
    return made | {"ReportError": report_error_callback(_report)}


def _failed(signature: tuple[Any, ...]) -> Any:
    """Return the value by which a C function reports failure; None if it returns nothing.

    *signature* is the C types of its result and arguments.
    """
    return int(TfLiteStatus.ERROR) if signature[0] is ctypes.c_int else None


def _contained(function: Function, failed: Any) -> Function:
    """Wrap the Python function *function* for calls from C, which cannot handle exceptions.

    After an exception, the wrapper stores the exception for the delegate's caller, and returns
    *failed*.
    """

    def call(address: int, *arguments: Any) -> Any:
        native = _contexts.get(address)
        if native is None:
            return failed
        try:
            result = function(native, *arguments)
        except BaseException as error:  # noqa: BLE001 - C could not tell an exception from success
            native.fail(error)
            return failed
        return int(TfLiteStatus.OK) if result is None and failed is not None else result

    return call


def _report(address: int, message: str) -> None:
    native = _contexts.get(address)
    if native is not None:
        native.report(message)


def _function(function: Function) -> Function:
    """Register *function* for the struct field of the same name in camel case."""
    _FUNCTIONS["".join(part.title() for part in function.__name__.split("_"))] = function
    return function


# -- graph -------------------------------------------------------------------------------------


@_function
def get_execution_plan(native: NativeContext, plan: Any) -> None:
    """Store the address of a ``TfLiteIntArray`` of node indices, in execution order, in *plan*."""
    plan[0] = native.lend_ints(native.current.get_execution_plan())


@_function
def get_node_and_registration(
    native: NativeContext, index: int, node: Any, registration: Any
) -> None:
    """Store the addresses of the structs of node *index* where *node* and *registration* point."""
    node[0], registration[0] = native.node(index).addresses


@_function
def replace_node_subsets_with_delegate_kernels(
    native: NativeContext, registration: TfLiteRegistration, nodes: int, delegate: int
) -> None:
    """Replace nodes by delegate nodes that call the functions of *registration*.

    Args:
        native: the C context of a subgraph.
        registration: C struct with the functions of the delegate nodes.
        nodes: address of a ``TfLiteIntArray`` of node indices.
        delegate: address of the ``TfLiteDelegate``, which must be that of *native*.
    """
    if delegate != native.delegate.address:
        raise ArgumentError(f"nodes are replaced for another delegate, at {delegate or 0:#x}")
    native.read_nodes()
    native.current.replace_node_subsets_with_delegate_kernels(
        kernel_registration(
            lambda _: native, KernelFunctions(registration), native.delegate.name()
        ),
        ints_at(nodes),
        native.delegate,
    )
    native.write()


@_function
def preview_delegate_partitioning(
    native: NativeContext, nodes: int, params: Any, count: Any
) -> None:
    """Store the partitions that replacing nodes would give in *params*, their number in *count*.

    *nodes* is the address of a ``TfLiteIntArray`` of node indices.
    """
    native.read_nodes()
    found = native.current.preview_delegate_partitioning(ints_at(nodes))
    params[0] = native.lend(_params_array(native, found))
    count[0] = len(found)


def _params_array(native: NativeContext, found: list[DelegateParams]) -> Any:
    kept: list[Any] = []
    array = (TfLiteDelegateParams * len(found))()
    for i, params in enumerate(found):
        array[i] = params_struct(params, 0, kept)
    for memory in kept:
        native.lend(memory)
    return array


@_function
def acquire_subgraph_context(native: NativeContext, index: int, context: Any) -> None:
    """Store the address of the ``TfLiteContext`` of subgraph *index* in the pointer *context*."""
    context[0] = native.acquire(index).address


@_function
def release_subgraph_context(native: NativeContext, index: int) -> None:
    """Release the ``TfLiteContext`` of subgraph *index*, which C code has acquired."""
    native.release(index)


@_function
def get_model_metadata(native: NativeContext, name: bytes, content: Any, size: Any) -> None:
    """Store address and size of the model's metadata entry *name* in *content* and *size*.

    Args:
        native: the C context of a subgraph.
        name: name of the metadata entry.
        content: pointer that receives the address.
        size: pointer that receives the number of bytes.
    """
    found = native.current.get_model_metadata(name.decode())
    content[0], size[0] = found.ctypes.data, len(found)


# -- tensors -----------------------------------------------------------------------------------


@_function
def add_tensors(native: NativeContext, count: int, first: Any) -> None:
    """Append *count* tensors, and store the index of the first one in *first*, unless it is null.

    The delegate then sets their type, allocation and shape.
    """
    index = native.current.add_tensors(count)
    native.write()
    if first:
        first[0] = index


@_function
def resize_tensor(native: NativeContext, tensor: int, dims: int) -> None:
    """Set the shape of the tensor whose struct is at address *tensor*.

    *dims* is the address of a ``TfLiteIntArray`` from ``malloc``, which belongs to the runtime from
    now on.
    """
    _resize(native, tensor, dims)


@_function
def resize_tensor_explicit(native: NativeContext, tensor: int, rank: int, dims: Any) -> None:
    """Set the shape of the tensor whose struct is at address *tensor*.

    *dims* is a pointer to the *rank* dimensions, which are copied.
    """
    _resize(native, tensor, malloc_int_array(dims[:rank]))


def _resize(native: NativeContext, address: int, dims: int) -> None:
    try:
        found = native.tensors.at(address)
        found.read_description(native.current)
        found.read_allocation(native.current)
        shape = ints_at(dims)
        before = found.tensor.data
        native.current.resize_tensor(found.tensor, shape)
    except BaseException:
        libc().free(dims)
        raise
    found.take_dims(dims)
    found.struct.allocation_type = int(found.tensor.allocation_type)  # it may no longer be dynamic
    if found.tensor.data is not before:
        found.resized()


@_function
def get_tensor(native: NativeContext, index: int) -> int:
    """Return the address of the ``TfLiteTensor`` of the tensor with *index*."""
    if not 0 <= index < len(native.tensors):
        raise ArgumentError(f"no tensor {index}; the subgraph has {len(native.tensors)}")
    return native.tensors.address_of(index)


# -- memory and other contexts -----------------------------------------------------------------


@_function
def allocate_persistent_buffer(native: NativeContext, size: int) -> int:
    """Return the address of *size* new bytes that are freed with the subgraph."""
    memory = ctypes.create_string_buffer(max(size, 1))
    native.kept.append(memory)
    return ctypes.addressof(memory)


@_function
def get_external_context(native: NativeContext, kind: int) -> int | None:
    """Return the pointer that the delegate has stored under the number *kind*, or None."""
    return native.external_contexts.get(kind)


@_function
def set_external_context(native: NativeContext, kind: int, context: int | None) -> None:
    """Store the pointer *context*, under the number *kind*, for :func:`get_external_context`."""
    native.external_contexts[kind] = context or 0


def _for_microcontrollers(name: str) -> Function:
    def refuse(native: NativeContext, *arguments: Any) -> None:
        raise OperatorError(
            f"TfLiteContext.{name} exists on microcontrollers only; the delegate must not call it"
        )

    return refuse


_FUNCTIONS |= {
    name: _for_microcontrollers(name)
    for name in (
        "AllocateBufferForEval",
        "GetEvalTensor",
        "GetScratchBuffer",
        "RequestScratchBufferInArena",
    )
}
