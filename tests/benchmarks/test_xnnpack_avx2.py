"""XNNPACK limited to AVX2: what it chooses then, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from delegraph_numba_cpu.library.cpu import host_features

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "docs" / "demo" / "models" / "digits_int8.tflite"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "avx2" not in host_features(), reason="needs Linux and AVX2"
)


def answer_of(*lines: str) -> str:
    """Return the output of a process that runs *lines* in this folder, errors included."""
    found = subprocess.run(
        [sys.executable, "-c", "\n".join(["import xnnpack_avx2 as limited", *lines])],
        cwd=HERE,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return found.stdout


def test_xnnpack_chooses_no_kernel_beyond_avx2() -> None:
    found = answer_of(
        "limited.limit_to_avx2()",
        "from ai_edge_litert.interpreter import Interpreter",
        f"Interpreter({str(MODEL)!r}).allocate_tensors()",
        "print(sorted(limited.instructions_of_kernels()))",
    )
    assert "'avx2'" in found
    assert not any(word in found for word in ("avx512", "avx256", "vnni"))


def test_other_fields_than_those_of_the_processor_are_refused() -> None:
    found = answer_of("limited.FIELDS[12] = 'another'", "limited.limit_to_avx2()")
    assert "LimitError: cpuinfo_isa in" in found
    assert "disagree about another" in found


def test_a_library_without_the_symbols_is_refused() -> None:
    found = answer_of("limited.VARIABLE = 'another'", "limited.limit_to_avx2()")
    assert "has no symbol another" in found
