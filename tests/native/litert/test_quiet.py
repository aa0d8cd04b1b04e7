from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert")

SINES = Path(__file__).parents[3] / "docs" / "demo" / "models" / "sines.tflite"
CODE = """
import sys
from ai_edge_litert import compiled_model as official
from delegraph.native.litert import compiled_model
from delegraph.native.litert.quiet import quiet_environment

for _ in range(2):
    environment = {environment}
    compiled_model(sys.argv[1], environment=environment).close()
print("still there", file=sys.stderr)
official.CompiledModel.from_buffer(b"no model", environment=environment)
"""


def printed(environment: str) -> list[str]:
    code = CODE.format(environment=environment)
    done = subprocess.run(
        [sys.executable, "-c", code, str(SINES)], capture_output=True, text=True, check=False
    )
    assert "Failed to load model from buffer" in done.stderr
    return done.stderr.splitlines()


def test_litert_prints_errors_only() -> None:
    loud = printed("official.Environment.create()")
    quiet = printed("quiet_environment(official)")
    assert any(line.startswith("WARNING: ") for line in loud)
    assert any("RegisterAccelerator" in line for line in loud)
    assert [line for line in quiet if "INFO: [" in line or "WARNING: " in line] == []
    assert "still there" in quiet


XNNPACK = """
import sys
from ai_edge_litert.interpreter import Interpreter
from delegraph.native.litert.quiet import keep_xnnpack_quiet
{first}
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
print("still there", file=sys.stderr)
Interpreter(model_content=b"no model")
"""


def test_xnnpack_does_not_announce_itself_and_errors_are_printed() -> None:
    def lines(first: str) -> list[str]:
        code = [sys.executable, "-c", XNNPACK.format(first=first), str(SINES)]
        return subprocess.run(code, capture_output=True, text=True, check=False).stderr.splitlines()

    loud, quiet = lines(""), lines("keep_xnnpack_quiet()")
    assert any("Created TensorFlow Lite XNNPACK" in line for line in loud)
    assert quiet[0] == "still there"
    assert quiet[-1].startswith("ValueError: ")
