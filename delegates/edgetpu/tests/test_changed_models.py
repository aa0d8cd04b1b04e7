"""Executables whose checksums are right and whose models were changed, run by a compiled delegate.

The model inside an executable goes the way of any model: it is refused with a reason, or it runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COUNT = 30

RUN = """
import sys
import numpy as np
from compiled_models import DIGITS, compiled
from delegraph import BuiltinOperator, Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema.enums import TensorType
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model

TYPES = [TensorType[name] for name in ("FLOAT32", "INT8", "UINT8", "INT32", "BOOL", "INT64")]
OPERATORS = [BuiltinOperator[name] for name in (
    "ADD", "MUL", "RELU", "RESHAPE", "SOFTMAX", "EQUAL", "MAXIMUM", "PAD", "REVERSE_V2", "CAST",
)]
MODEL = read_model(np.frombuffer(DIGITS.read_bytes(), np.uint8))


def changed(rng):
    graph, codes = MODEL.subgraphs[0], list(MODEL.operator_codes)
    tensors = list(graph.tensors)
    for _ in range(2):
        i = int(rng.integers(len(tensors)))
        if rng.random() < 0.4:
            tensors[i] = tensors[i].replace(type=TYPES[rng.integers(len(TYPES))])
        elif rng.random() < 0.5 and tensors[i].shape:
            shape = list(tensors[i].shape)
            shape[rng.integers(len(shape))] = int(rng.choice([0, 1, 3, 64]))
            tensors[i] = tensors[i].replace(shape=tuple(shape))
        else:
            j, code = int(rng.integers(len(codes))), OPERATORS[rng.integers(len(OPERATORS))]
            codes[j] = codes[j].replace(
                builtin_code=code, deprecated_builtin_code=min(int(code), 127)
            )
    graph = graph.replace(tensors=tuple(tensors))
    return MODEL.replace(subgraphs=(graph,), operator_codes=tuple(codes))


ran = 0
for seed in range(int(sys.argv[1])):
    try:
        model = compiled(write_model(changed(np.random.default_rng(seed))))
        with Interpreter(model_content=model, delegates=["edgetpu:via=numba_cpu"]) as interpreter:
            interpreter.allocate_tensors()
            interpreter.invoke()
            ran += 1
    except (DelegraphError, ValueError):
        pass
print(ran)
"""


def test_changed_models_are_refused_or_run() -> None:
    pytest.importorskip("delegraph_numba_cpu")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(COUNT)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) < COUNT
