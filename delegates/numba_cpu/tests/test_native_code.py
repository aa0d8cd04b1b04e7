"""Native code: of kernels only, with their helpers inside."""

from __future__ import annotations

from collections.abc import Callable

SOURCE = """
from numba import cfunc, types
from delegraph_numba_cpu.codegen.native_code import compile_kernels_only
from delegraph_numba_cpu.codegen.host_platform import host_machine

compile_kernels_only(host_machine())
from delegraph_numba_cpu.codegen.intrinsics import jit, load_i64, store_i64
import llvmlite.binding as llvm

@jit
def helper(value):
    return 3 * value + 1

def kernel(block, tile, worker):
    store_i64(block, helper(load_i64(block)))

compiled = cfunc(types.void(*[types.int64] * 3))(kernel)
packed = compiled._library.object_code(compiled._wrapper_name, "seen")
code = llvm.ObjectFileRef.from_data(packed)
print(compiled.address, any(section.is_text() for section in code.sections()))
lines = compiled._library.get_llvm_str().splitlines()
print(any(" call " in line and "helper" in line for line in lines))
defined = [line for line in lines if line.startswith("define") and "internal" not in line]
print([line.split("@")[1].split("(")[0] for line in defined])
"""


def test_kernels_hold_their_helpers_and_nothing_is_made_to_run(
    fresh_python: Callable[..., str],
) -> None:
    address_and_code, has_calls, seen = fresh_python(SOURCE).splitlines()
    assert address_and_code == "0 True"
    assert has_calls == "False"
    assert seen == "['seen']"
