"""Native code: of kernels only, with their helpers inside. One test for each patch of Numba."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

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

def kernel(record, tile, worker):
    store_i64(record, helper(load_i64(record)))

compiled = cfunc(types.void(*[types.int64] * 3))(kernel)
code = object_code(compiled, "seen")
module = llvm.parse_assembly(compiled.inspect_llvm())
"""


FACTS = """
import json

def has_calls(text):
    return any(" call " in line and "inner" in line for line in text.splitlines())

def names(is_chosen):
    values = [*module.functions, *module.global_variables]
    return [value.name for value in values if is_chosen(value)]

print(json.dumps({
    "address": compiled.address,
    "has text": any(s.is_text() for s in llvm.ObjectFileRef.from_data(code).sections()),
    "helper calls": has_calls(*helper.inspect_llvm().values()),
    "kernel calls": has_calls(compiled.inspect_llvm()),
    "visible": names(lambda v: not v.is_declaration and v.linkage != llvm.Linkage.internal),
    "needed": names(lambda v: v.is_declaration and not v.name.startswith("llvm.")),
}))
"""


@pytest.fixture(scope="module")
def compiled(fresh_python: Callable[..., str]) -> Callable[..., str]:
    """The output of a program that has compiled a kernel with helpers."""

    def run(program: str, machine: str = host_machine(), **settings: str) -> str:
        source = COMPILED.format(machine=machine) + program
        return fresh_python(source, env={**os.environ, **settings}).strip()

    return run


@pytest.fixture(scope="module")
def facts(compiled: Callable[..., str]) -> dict[str, Any]:
    """Facts about a kernel with helpers, compiled for this machine."""
    found: dict[str, Any] = json.loads(compiled(FACTS))
    return found


def test_nothing_is_made_to_run(facts: dict[str, Any]) -> None:
    assert (facts["address"], facts["has text"]) == (0, True)


def test_a_helper_is_optimised_as_a_part_of_kernels_only(facts: dict[str, Any]) -> None:
    assert (facts["helper calls"], facts["kernel calls"]) == (True, False)


def test_only_the_kernel_is_seen_from_outside(facts: dict[str, Any]) -> None:
    assert facts["visible"] == ["seen"]


def test_what_the_wrapper_of_a_kernel_needs_is_known(facts: dict[str, Any]) -> None:
    assert set(facts["needed"]) <= set(UNUSED)


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
