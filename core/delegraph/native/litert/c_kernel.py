"""Custom operators computed by C kernels for LiteRT's ``LiteRtAddCustomOpKernelOption``.

LiteRT's Python classes cannot register such kernels, and LiteRT ignores the status that their
functions return. So Delegraph itself calls the functions, with tensor buffers of ``libLiteRt`` on
the tensors' memory. A status other than 0 is an error that names the node. As in LiteRT, all nodes
share one ``user_data``, so nodes with different options are rejected.

Source:
    LiteRtCustomOpKernel, litert/c/litert_custom_op_kernel.h; CustomOpDispatcher,
    litert/runtime/custom_op_dispatcher.cc.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_size_t,
    c_uint32,
    c_void_p,
)
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentTypeError, OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.memory.buffers import aligned_buffer
from delegraph.native.litert.accelerator_functions import exported_function
from delegraph.native.tensor_types import C_TYPES
from delegraph.operators.registration import Eval, Node, OpContext, Registration
from delegraph.operators.tensor import Tensor

_MAX_RANK = 8
_ALIGNMENT = 64
"""Alignment in bytes that LiteRT demands of memory for tensor buffers."""


class _Layout(Structure):
    """``LiteRtLayout``: 68 bytes."""

    _fields_ = (
        ("rank", c_uint32, 7),
        ("has_strides", c_uint32, 1),
        ("dimensions", c_int32 * _MAX_RANK),
        ("strides", c_uint32 * _MAX_RANK),
    )


class _TensorType(Structure):
    """``LiteRtRankedTensorType``: 72 bytes."""

    _fields_ = (("element_type", c_int), ("layout", _Layout))


_INIT = CFUNCTYPE(c_int, c_void_p, c_char_p, c_size_t)
_LAYOUTS = CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(_Layout), c_size_t, POINTER(_Layout))
_RUN = CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p))
_DESTROY = CFUNCTYPE(c_int, c_void_p)


def litert_custom_op(
    name: str,
    *,
    run: Any,
    get_output_layouts: Any,
    init: Any = None,
    destroy: Any = None,
    user_data: int | None = None,
) -> Registration:
    """Return a custom operator that the C functions of a ``LiteRtCustomOpKernel`` compute.

    ::

        library = ctypes.CDLL("libvendor.so")
        scale = litert_custom_op(
            "Scale", run=library.ScaleRun, get_output_layouts=library.ScaleLayouts
        )
        model = compiled_model("model.tflite", custom_ops={"Scale": scale})

    The result may be used wherever a custom operator may. Each function is a ``ctypes`` function or
    an address, and returns a status, 0 for success. The library must stay loaded. The functions run
    without the GIL, and for several models at the same time.

    Args:
        name: name of the operator, for errors.
        run: ``Run(user_data, n, inputs, m, outputs)``; it locks the tensor buffers that it
            receives.
        get_output_layouts: ``GetOutputLayouts(user_data, n, inputs, m, outputs)``.
        init: ``Init(user_data, options, size)``, called once for each node.
        destroy: ``Destroy(user_data)``, called once for each node.
        user_data: address that each function gets; None for a null pointer.

    Raises:
        ArgumentTypeError: an argument is neither a C function nor an address.
    """
    kernel = _Kernel(
        name,
        _function(_INIT, init),
        _function(_LAYOUTS, get_output_layouts),
        _function(_RUN, run),
        _function(_DESTROY, destroy),
        user_data,
    )
    return Registration(name, kernel.prepare, init=kernel.init, free=kernel.free)


def _function(kind: Any, given: Any) -> Any:
    """Return *given* as a C function of type *kind*; None if *given* is None.

    Raises:
        ArgumentTypeError: *given* is neither a C function nor an address.
    """
    if given is None:
        return None
    if isinstance(given, ctypes._CFuncPtr):  # type: ignore[attr-defined]  # the stubs hide it
        given = ctypes.cast(given, c_void_p).value
    if not isinstance(given, int) or isinstance(given, bool) or given <= 0:
        raise ArgumentTypeError(f"a C kernel's function is {given!r}, expected one or its address")
    return kind(given)


class _Kernel:
    """The C functions of one custom operator."""

    def __init__(
        self, name: str, init: Any, layouts: Any, run: Any, destroy: Any, user_data: int | None
    ) -> None:
        self._name = name
        self._init, self._layouts, self._run, self._destroy = init, layouts, run, destroy
        self._user_data = user_data
        self._options: Counter[bytes] = Counter()  # of the living nodes

    def init(self, context: OpContext, node: Node) -> _Buffers:
        """Call ``Init`` for *node*; return its buffers.

        Raises:
            OperatorError: the kernel fails, or another node with other options exists.
        """
        options = bytes(node.custom_options)
        if self._init is not None:
            if any(other != options for other in self._options):
                raise OperatorError(
                    f"nodes of {self._name!r} have different options, and a C kernel has one "
                    "user_data for all of them, as in LiteRT"
                )
            self._check("Init", self._init(self._user_data, options, len(options)))
            self._options[options] += 1
        return _Buffers(options)

    def free(self, buffers: _Buffers) -> None:
        """Destroy a node's buffers, and call ``Destroy`` for it."""
        buffers.destroy()
        self._options -= Counter([buffers.options])
        if self._destroy is not None:
            self._check("Destroy", self._destroy(self._user_data))

    def prepare(self, context: OpContext, node: Node) -> Eval:
        """Get the shapes of the outputs of *node* from the kernel; return the evaluation.

        Raises:
            OperatorError: the kernel fails, or a tensor has a type that C kernels do not support.
        """
        indices = (*node.inputs, *node.outputs)
        if min(indices, default=0) < 0:
            raise OperatorError(f"{self._name!r} lacks an input, and C kernels need all")
        tensors = [context.tensors[i] for i in indices]
        for tensor in tensors:
            if tensor.type in OBJECT_TYPES or tensor.is_packed or tensor.type not in C_TYPES:
                raise OperatorError(f"C kernels take no {tensor!r}")
        n, m = len(node.inputs), len(node.outputs)
        given = (_Layout * n)(*(_layout(tensor) for tensor in tensors[:n]))
        found = (_Layout * m)()
        self._check("GetOutputLayouts", self._layouts(self._user_data, n, given, m, found))
        for tensor, layout in zip(tensors[n:], found, strict=True):
            if layout.rank > _MAX_RANK or layout.has_strides:
                raise OperatorError(f"GetOutputLayouts gives no plain layout for {tensor!r}")
            context.resize_tensor(tensor, layout.dimensions[: layout.rank])
        buffers: _Buffers = node.user_data
        run, user_data, check = self._run, self._user_data, self._check

        def compute() -> None:
            check("Run", buffers.compute(tensors, n, lambda *given: run(user_data, *given)))

        return compute

    def _check(self, function: str, status: int) -> None:
        if status != 0:
            raise OperatorError(f"{function} of the C kernel {self._name!r} gives status {status}")


class _Buffers:
    """LiteRT's tensor buffers of one node, which are made again when tensors' memory changes.

    Attributes:
        options: options of the node.
    """

    def __init__(self, options: bytes) -> None:
        self.options = options
        self._arrays: list[NDArray[Any]] = []
        self._aligned: list[NDArray[Any]] = []
        self._handles: list[c_void_p] = []

    def compute(self, tensors: Sequence[Tensor], inputs: int, run: Callable[..., int]) -> int:
        """Call *run* with the buffers of *tensors*, of which the first *inputs* are inputs."""
        arrays = [tensor.data for tensor in tensors]
        if len(arrays) != len(self._arrays) or any(
            a is not b for a, b in zip(arrays, self._arrays, strict=True)
        ):
            self._make(tensors, arrays)
        both = list(zip(self._arrays, self._aligned, strict=True))
        for array, aligned in both[:inputs]:
            if array is not aligned:
                np.copyto(aligned, array)
        handles = [handle.value for handle in self._handles]
        outputs = len(handles) - inputs
        status = run(
            inputs,
            (c_void_p * inputs)(*handles[:inputs]),
            outputs,
            (c_void_p * outputs)(*handles[inputs:]),
        )
        for array, aligned in both[inputs:]:
            if array is not aligned:
                np.copyto(array, aligned)
        return status

    def _make(self, tensors: Sequence[Tensor], arrays: list[NDArray[Any]]) -> None:
        self.destroy()
        for tensor, array in zip(tensors, arrays, strict=True):
            aligned = array if _is_aligned(array) else _aligned(array)
            handle, kind = c_void_p(), _TensorType(C_TYPES[tensor.type], _layout(tensor))
            address = aligned.ctypes.data
            status = _create()(byref(kind), address, aligned.nbytes, None, byref(handle))
            if status != 0:
                raise OperatorError(f"LiteRT makes no buffer of {tensor!r}: status {status}")
            self._handles.append(handle)
            self._aligned.append(aligned)
        self._arrays = arrays

    def destroy(self) -> None:
        """Destroy the buffers, but not the tensors' memory."""
        for handle in self._handles:
            _destroy()(handle)
        self._arrays, self._aligned, self._handles = [], [], []


def _layout(tensor: Tensor) -> _Layout:
    """Return the layout of a tensor's present shape.

    Raises:
        OperatorError: the tensor has too many dimensions.
    """
    if len(tensor.shape) > _MAX_RANK:
        raise OperatorError(f"{tensor!r} has more than {_MAX_RANK} dimensions")
    layout = _Layout(rank=len(tensor.shape))
    layout.dimensions[: len(tensor.shape)] = list(tensor.shape)
    return layout


def _is_aligned(array: NDArray[Any]) -> bool:
    is_at_multiple = array.ctypes.data % _ALIGNMENT == 0
    return bool(is_at_multiple and array.nbytes and array.flags.c_contiguous)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    memory = aligned_buffer(max(array.nbytes, 1), _ALIGNMENT)[: array.nbytes]
    return memory.view(array.dtype).reshape(array.shape)


@cache
def _create() -> Any:
    function = exported_function("LiteRtCreateTensorBufferFromHostMemory")
    function.restype = c_int
    function.argtypes = [POINTER(_TensorType), c_void_p, c_size_t, c_void_p, POINTER(c_void_p)]
    return function


@cache
def _destroy() -> Any:
    function = exported_function("LiteRtDestroyTensorBuffer")
    function.restype, function.argtypes = None, [c_void_p]
    return function
