"""Intrinsics that Numba lacks: memory access by address, atomics, calls by address."""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.registry import machine

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()

jit = njit(
    nogil=True,
    error_model="numpy",
    boundscheck=False,
    no_cpython_wrapper=True,  # Python calls no helpers; this saves a third of the compile time
    no_cfunc_wrapper=True,
)
"""Decorator that compiles a helper of kernels: no exceptions, no Python objects."""


def pointer(builder: Any, address: Any, type: Any) -> Any:
    """Return an address as a pointer to *type*."""
    return builder.inttoptr(address, type.as_pointer())


def call(builder: Any, name: str, result: Any, arguments: Any) -> Any:
    """Append a call of the LLVM intrinsic or C function *name*, which returns the type *result*."""
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        signature = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(module, signature, name)
    return builder.call(function, arguments)


def _load(type: Any, number: Any) -> Any:
    @intrinsic
    def load(context: Any, address: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = builder.load(pointer(builder, arguments[0], type))
            value.align = 1
            return value

        return number(types.int64), generate

    return load


def _store(type: Any, number: Any) -> Any:
    @intrinsic
    def store(context: Any, address: Any, value: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            done = builder.store(arguments[1], pointer(builder, arguments[0], type))
            done.align = 1
            return target.get_dummy_value()

        return types.void(types.int64, number), generate

    return store


load_i8, store_i8 = _load(I8, types.int8), _store(I8, types.int8)
load_u8, store_u8 = _load(I8, types.uint8), _store(I8, types.uint8)
load_i16, store_i16 = _load(I16, types.int16), _store(I16, types.int16)
load_i32, store_i32 = _load(I32, types.int32), _store(I32, types.int32)
load_i64, store_i64 = _load(I64, types.int64), _store(I64, types.int64)
load_f32, store_f32 = _load(F32, types.float32), _store(F32, types.float32)


@jit
def word(record, i):
    """Return word *i* of an instruction's record: an integer or an address."""
    return load_i64(record + 8 * i)


@jit
def real(record, i):
    """Return word *i* of an instruction's record as float32."""
    return load_f32(record + 8 * i)


@intrinsic
def atomic_load(context: Any, address: Any) -> Any:
    """Return the int64 at *address*, which other threads may write at the same time."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(pointer(builder, arguments[0], I64), "seq_cst", 8)

    return types.int64(types.int64), generate


@intrinsic
def atomic_store(context: Any, address: Any, value: Any) -> Any:
    """Store an int64 at *address*, which other threads may read at the same time."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], pointer(builder, arguments[0], I64), "seq_cst", 8)
        return target.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def atomic_add(context: Any, address: Any, value: Any) -> Any:
    """Add *value* to the int64 at *address*, as one step for all threads.

    Return its previous value.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw(
            "add", pointer(builder, arguments[0], I64), arguments[1], "seq_cst"
        )

    return types.int64(types.int64, types.int64), generate


@intrinsic
def compare_and_swap(context: Any, address: Any, old: Any, new: Any) -> Any:
    """Write *new* to *address* if the int64 there is *old*, as one step for all threads.

    Return the int64 that was there before.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = builder.cmpxchg(
            pointer(builder, arguments[0], I64), arguments[1], arguments[2], "seq_cst", "seq_cst"
        )
        return builder.extract_value(result, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def call_kernel(context: Any, address: Any, record: Any, tile: Any, worker: Any) -> Any:
    """Call the kernel at *address* for one tile of the instruction whose record is at *record*."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kernel = ir.FunctionType(ir.VoidType(), [I64, I64, I64])
        builder.call(builder.inttoptr(arguments[0], kernel.as_pointer()), arguments[1:])
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def not_inlined(context: Any) -> Any:
    """Prevent LLVM from inlining the function that calls this intrinsic."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return target.get_dummy_value()

    return types.void(), generate


@intrinsic
def pause(context: Any) -> Any:
    """Tell the processor that this thread is polling memory, so that it saves power."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if machine() == "x86_64":
            call(builder, "llvm.x86.sse2.pause", ir.VoidType(), [])
        elif machine() == "aarch64":
            call(builder, "llvm.aarch64.hint", ir.VoidType(), [ir.Constant(I32, 1)])  # YIELD
        return target.get_dummy_value()

    return types.void(), generate


@intrinsic
def sleep_briefly(context: Any) -> Any:
    """Sleep for a fraction of a millisecond, or for the system's shortest time."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        name, time = ("Sleep", 1) if sys.platform == "win32" else ("usleep", 200)
        result = ir.VoidType() if sys.platform == "win32" else I32
        call(builder, name, result, [ir.Constant(I32, time)])
        return target.get_dummy_value()

    return types.void(), generate


@intrinsic
def present_processor(context: Any) -> Any:
    """Return the number of the processor that runs this thread; -1 if the system hides it."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if sys.platform != "linux":
            return ir.Constant(I64, -1)
        return builder.sext(call(builder, "sched_getcpu", I32, []), I64)

    return types.int64(), generate


@intrinsic
def system_call(context: Any, number: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Call the C library's ``syscall`` with four arguments; the others are 0."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        module = builder.module
        function = module.globals.get("syscall")
        if function is None:
            function = ir.Function(module, ir.FunctionType(I64, [I64], var_arg=True), "syscall")
        zero = ir.Constant(I64, 0)
        return builder.call(function, [*arguments, zero, zero])

    return types.int64(*[types.int64] * 5), generate


@intrinsic
def copy_bytes(context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy *count* bytes from *source* to *target*; the two ranges do not overlap.

    It calls ``memmove``. A library without a version for ``memcpy`` would get glibc's oldest
    version, which copies only 16 bytes at a time.
    """

    def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, frm = (pointer(builder, address, I8) for address in arguments[:2])
        call(builder, "memmove", I8.as_pointer(), [to, frm, arguments[2]])
        return lowering.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def fill_bytes(context: Any, target: Any, value: Any, count: Any) -> Any:
    """Set *count* bytes from the address *target* on to the low byte of *value*."""

    def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = pointer(builder, arguments[0], I8)
        byte = builder.trunc(arguments[1], I32)
        call(builder, "memset", I8.as_pointer(), [to, byte, arguments[2]])
        return lowering.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate
