"""Native code: of kernels only, with their helpers inside. One test for each patch of Numba."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from delegraph_numba_cpu.codegen.host_platform import host_machine
from delegraph_numba_cpu.codegen.numba_runtime_symbols import UNUSED

COMPILED = """
from numba import cfunc, types
from delegraph_numba_cpu.codegen.native_code import compile_kernels_only, object_code

compile_kernels_only({machine!r})
from delegraph_numba_cpu.codegen.intrinsics import jit, load_i64, store_i64
import llvmlite.binding as llvm

@jit
def inner(value):
    return 3 * value

@jit
def helper(value):
    return inner(value) + 1

def kernel(block, tile, worker):
    store_i64(block, helper(load_i64(block)))

compiled = cfunc(types.void(*[types.int64] * 3))(kernel)
code = object_code(compiled, "seen")
module = llvm.parse_assembly(compiled.inspect_llvm())
"""


@pytest.fixture
def compiled(fresh_python: Callable[..., str]) -> Callable[..., str]:
    """The output of a program that has compiled a kernel with helpers."""

    def run(program: str, machine: str = host_machine(), **settings: str) -> str:
        source = COMPILED.format(machine=machine) + program
        return fresh_python(source, env={**os.environ, **settings}).strip()

    return run


def test_nothing_is_made_to_run(compiled: Callable[..., str]) -> None:
    sections = "any(s.is_text() for s in llvm.ObjectFileRef.from_data(code).sections())"
    assert compiled(f"print(compiled.address, {sections})") == "0 True"


def test_a_helper_is_optimised_as_a_part_of_kernels_only(compiled: Callable[..., str]) -> None:
    calls = """
def has_calls(text):
    return any(" call " in line and "inner" in line for line in text.splitlines())
print(has_calls(*helper.inspect_llvm().values()), has_calls(compiled.inspect_llvm()))
"""
    assert compiled(calls) == "True False"


def test_only_the_kernel_is_seen_from_outside(compiled: Callable[..., str]) -> None:
    names = """
values = [*module.functions, *module.global_variables]
print(*(v.name for v in values if not v.is_declaration and v.linkage != llvm.Linkage.internal))
"""
    assert compiled(names) == "seen"


def test_what_the_wrapper_of_a_kernel_needs_is_known(compiled: Callable[..., str]) -> None:
    names = """
values = [*module.functions, *module.global_variables]
print(*(v.name for v in values if v.is_declaration and not v.name.startswith("llvm.")))
"""
    assert set(compiled(names).split()) <= set(UNUSED)


def test_instructions_are_those_of_the_environment(compiled: Callable[..., str]) -> None:
    target = """
from numba.core.registry import cpu_target
print(*cpu_target.target_context.codegen().magic_tuple()[1:])
"""
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+sse4.2"}
    assert compiled(target, "x86_64", **settings) == "generic +sse4.2"


@pytest.mark.skipif(sys.platform != "linux", reason="object files have another format")
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_kernels_may_be_for_other_machines(compiled: Callable[..., str], machine: str) -> None:
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    triple, elf_machine = compiled("print(module.triple, code[18])", machine, **settings).split()
    assert triple.startswith(f"{machine}-")
    assert elf_machine == {"x86_64": "62", "aarch64": "183"}[machine]
