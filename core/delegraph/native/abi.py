"""C structs and function types of TFLite as ctypes, for both directions of ``native``.

The definitions hold for tflite-runtime 2.14, TensorFlow 2.14 to 2.21 and ai-edge-litert 1.0 to 2.3,
on 64-bit little-endian Linux and macOS. In these versions no field has another offset. The runtime
for microcontrollers has other definitions. On Windows, newer versions have two more functions at
the end of the context. :mod:`delegraph.native.litert.guard` checks a runtime against these
definitions before it gets a delegate of Delegraph.

Source:
    tflite/core/c/common.h, c_api_types.h.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_bool,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)
from enum import IntEnum
from functools import cache
from typing import Any


class TfLiteStatus(IntEnum):
    """Status code that every C function returns."""

    OK = 0
    ERROR = 1
    DELEGATE_ERROR = 2
    APPLICATION_ERROR = 3
    DELEGATE_DATA_NOT_FOUND = 4
    DELEGATE_DATA_WRITE_ERROR = 5
    DELEGATE_DATA_READ_ERROR = 6
    UNRESOLVED_OPS = 7
    CANCELLED = 8
    OUTPUT_SHAPE_NOT_KNOWN = 9


NULL_BUFFER_HANDLE = -1
"""Buffer handle of a tensor whose value no delegate's buffer has."""

DELEGATE_CODE = 51
"""Builtin operator code of a delegate node."""

AFFINE_QUANTIZATION = 1
"""Value of ``TfLiteQuantization.type`` if ``params`` is a :class:`TfLiteAffineQuantization`."""


# -- structs -----------------------------------------------------------------------------------


class TfLiteQuantizationParams(Structure):
    """Scale and zero point of a whole tensor."""

    _fields_ = [("scale", c_float), ("zero_point", c_int32)]


class TfLiteQuantization(Structure):
    """Quantization of any kind; ``type`` determines the struct that ``params`` points to."""

    _fields_ = [("type", c_int), ("params", c_void_p)]


class TfLiteAffineQuantization(Structure):
    """Scales (a ``TfLiteFloatArray*``) and zero points (a ``TfLiteIntArray*``) by channel."""

    _fields_ = [("scale", c_void_p), ("zero_point", c_void_p), ("quantized_dimension", c_int32)]


class TfLiteTensor(Structure):
    """A tensor; ``dims`` and ``dims_signature`` are ``TfLiteIntArray*``."""

    _fields_ = [
        ("type", c_int),
        ("data", c_void_p),
        ("dims", c_void_p),
        ("params", TfLiteQuantizationParams),
        ("allocation_type", c_int),
        ("bytes", c_size_t),
        ("allocation", c_void_p),
        ("name", c_char_p),
        ("delegate", c_void_p),
        ("buffer_handle", c_int),
        ("data_is_stale", c_bool),
        ("is_variable", c_bool),
        ("quantization", TfLiteQuantization),
        ("sparsity", c_void_p),
        ("dims_signature", c_void_p),
    ]


class TfLiteNode(Structure):
    """A node; its first four fields are ``TfLiteIntArray*``."""

    _fields_ = [
        ("inputs", c_void_p),
        ("outputs", c_void_p),
        ("intermediates", c_void_p),
        ("temporaries", c_void_p),
        ("user_data", c_void_p),
        ("builtin_data", c_void_p),
        ("custom_initial_data", c_void_p),
        ("custom_initial_data_size", c_int),
        ("delegate", c_void_p),
        ("might_have_side_effect", c_bool),
    ]


class TfLiteRegistration(Structure):
    """An operator's name, version, and pointers to functions of ``REGISTRATION_FUNCTIONS``."""

    _fields_ = [
        ("init", c_void_p),
        ("free", c_void_p),
        ("prepare", c_void_p),
        ("invoke", c_void_p),
        ("profiling_string", c_void_p),
        ("builtin_code", c_int32),
        ("custom_name", c_char_p),
        ("version", c_int),
        ("registration_external", c_void_p),
        ("async_kernel", c_void_p),
        ("inplace_operator", c_uint64),
    ]


class TfLiteDelegate(Structure):
    """A delegate: its data, its flags, and pointers to functions of ``DELEGATE_FUNCTIONS``."""

    _fields_ = [
        ("data_", c_void_p),
        ("Prepare", c_void_p),
        ("CopyFromBufferHandle", c_void_p),
        ("CopyToBufferHandle", c_void_p),
        ("FreeBufferHandle", c_void_p),
        ("flags", c_int64),
        ("opaque_delegate_builder", c_void_p),
    ]


class TfLiteDelegateParams(Structure):
    """A partition; the last three fields are ``TfLiteIntArray*``."""

    _fields_ = [
        ("delegate", c_void_p),
        ("nodes_to_replace", c_void_p),
        ("input_tensors", c_void_p),
        ("output_tensors", c_void_p),
    ]


class TfLiteContext(Structure):
    """C context of a subgraph, with pointers to the ``CONTEXT_FUNCTIONS``."""

    _fields_ = [
        ("tensors_size", c_size_t),
        ("GetExecutionPlan", c_void_p),
        ("tensors", c_void_p),
        ("impl_", c_void_p),
        ("ResizeTensor", c_void_p),
        ("ReportError", c_void_p),
        ("AddTensors", c_void_p),
        ("GetNodeAndRegistration", c_void_p),
        ("ReplaceNodeSubsetsWithDelegateKernels", c_void_p),
        ("recommended_num_threads", c_int),
        ("GetExternalContext", c_void_p),
        ("SetExternalContext", c_void_p),
        ("allow_fp32_relax_to_fp16", c_bool),
        ("profiler", c_void_p),
        ("AllocatePersistentBuffer", c_void_p),
        ("AllocateBufferForEval", c_void_p),
        ("RequestScratchBufferInArena", c_void_p),
        ("GetScratchBuffer", c_void_p),
        ("ResizeTensorExplicit", c_void_p),
        ("PreviewDelegatePartitioning", c_void_p),
        ("GetTensor", c_void_p),
        ("GetEvalTensor", c_void_p),
        ("GetModelMetadata", c_void_p),
        ("AcquireSubgraphContext", c_void_p),
        ("ReleaseSubgraphContext", c_void_p),
    ]


# -- function types: result, then arguments ----------------------------------------------------

Signature = tuple[Any, ...]

REGISTRATION_FUNCTIONS: dict[str, Signature] = {
    "init": (c_void_p, c_void_p, c_void_p, c_size_t),
    "free": (None, c_void_p, c_void_p),
    "prepare": (c_int, c_void_p, c_void_p),
    "invoke": (c_int, c_void_p, c_void_p),
    "profiling_string": (c_char_p, c_void_p, c_void_p),
}

DELEGATE_FUNCTIONS: dict[str, Signature] = {
    "Prepare": (c_int, c_void_p, c_void_p),
    "CopyFromBufferHandle": (c_int, c_void_p, c_void_p, c_int, c_void_p),
    "CopyToBufferHandle": (c_int, c_void_p, c_void_p, c_int, c_void_p),
    "FreeBufferHandle": (None, c_void_p, c_void_p, POINTER(c_int)),
}

CONTEXT_FUNCTIONS: dict[str, Signature] = {
    "GetExecutionPlan": (c_int, c_void_p, POINTER(c_void_p)),
    "ResizeTensor": (c_int, c_void_p, c_void_p, c_void_p),
    "ReportError": (None, c_void_p, c_char_p),  # followed by variable arguments
    "AddTensors": (c_int, c_void_p, c_int, POINTER(c_int)),
    "GetNodeAndRegistration": (c_int, c_void_p, c_int, POINTER(c_void_p), POINTER(c_void_p)),
    "ReplaceNodeSubsetsWithDelegateKernels": (
        c_int,
        c_void_p,
        TfLiteRegistration,
        c_void_p,
        c_void_p,
    ),
    "GetExternalContext": (c_void_p, c_void_p, c_int),
    "SetExternalContext": (None, c_void_p, c_int, c_void_p),
    "AllocatePersistentBuffer": (c_void_p, c_void_p, c_size_t),
    "AllocateBufferForEval": (c_int, c_void_p, c_size_t, POINTER(c_void_p)),
    "RequestScratchBufferInArena": (c_int, c_void_p, c_size_t, POINTER(c_int)),
    "GetScratchBuffer": (c_void_p, c_void_p, c_int),
    "ResizeTensorExplicit": (c_int, c_void_p, c_void_p, c_int, POINTER(c_int)),
    "PreviewDelegatePartitioning": (c_int, c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_int)),
    "GetTensor": (c_void_p, c_void_p, c_int),
    "GetEvalTensor": (c_void_p, c_void_p, c_int),
    "GetModelMetadata": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t)),
    "AcquireSubgraphContext": (c_int, c_void_p, c_int, POINTER(c_void_p)),
    "ReleaseSubgraphContext": (c_int, c_void_p, c_int),
}

CALLED = {name: PYFUNCTYPE(*signature) for name, signature in CONTEXT_FUNCTIONS.items()}
"""Function types for calling a runtime's context functions.

The GIL is not released, because these functions call Python back.
"""


def callback(signature: Signature) -> Any:
    """Return the ctypes type for a Python function that C calls with the GIL held.

    *signature* has the ctypes type of the result, then the types of the arguments.
    """
    return CFUNCTYPE(*signature)


# -- arrays ------------------------------------------------------------------------------------


@cache
def libc() -> ctypes.CDLL:
    """Return the process's C library, whose ``malloc`` and ``free`` TFLite also uses."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = c_void_p, [c_size_t]
    library.free.restype, library.free.argtypes = None, [c_void_p]
    return library


def is_known_platform() -> bool:
    """Whether the layouts of C structs and the C library of this platform are known."""
    return (
        sys.implementation.name == "cpython"
        and ctypes.sizeof(c_void_p) == 8
        and sys.byteorder == "little"
        and sys.platform in ("linux", "darwin")
    )


def ints_at(address: int | None) -> tuple[int, ...]:
    """Return the elements of the ``TfLiteIntArray`` at *address*; an empty tuple for null."""
    if not address:
        return ()
    count = c_int.from_address(address).value
    return tuple((c_int * count).from_address(address + 4))


def int_array(values: Sequence[int]) -> Any:
    """Return *values* as a ``TfLiteIntArray`` in Python's memory, for C functions that copy it."""
    return (c_int * (len(values) + 1))(len(values), *values)


def malloc_int_array(values: Sequence[int]) -> int:
    """Return the address of *values* as a ``TfLiteIntArray`` from ``malloc``; C must free it."""
    address = malloc(4 * (len(values) + 1))
    (c_int * (len(values) + 1)).from_address(address)[:] = [len(values), *values]
    return address


def malloc(size: int) -> int:
    """Allocate *size* bytes of C memory and return their address.

    Raises:
        MemoryError: there is not enough memory.
    """
    address: int | None = libc().malloc(max(size, 1))
    if address is None:
        raise MemoryError(f"no {size} bytes")
    return address
