"""Command lines whose JSON is described by ``schemas/``, and the folder in which they run."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from PIL import Image

from delegraph.schema.options import ReducerOptions
from delegraph.testing import constant, one_op_model, tensor

MODELS = Path(__file__).parent / "demo" / "models"
FLOAT, INT8 = MODELS / "digits_float.tflite", MODELS / "digits_int8.tflite"
SINES = MODELS / "sines.tflite"
WRONG = MODELS.with_name("wrong_sines.py")
ROWS = MODELS / "digits_rows.npz"

PICTURES = "--images", "pictures", "--truth", "truth.txt", "--labels", "labels.txt"
"""Options for the files of :func:`write_pictures`."""

EXAMPLES: dict[str, list[list[object]]] = {
    "run": [
        ["run", FLOAT],
        ["run", INT8, "--signature", "serving_default", "--threshold", "0.1"],
        ["run", SINES, "-d", "sin"],
    ],
    "benchmark": [["benchmark", model, "--dry-run"] for model in (FLOAT, SINES)],
    "benchmark-against": [
        ["benchmark", SINES, "--against", "-d sin", "--blocks", "5", "--seconds", "0.2"]
    ],
    "diff": [["diff", SINES, "-d", "sin"], ["diff", FLOAT, "--layers"]],
    "diff-bisect": [
        ["diff", SINES, "-d", "sin", "--bisect"],
        ["diff", SINES, "-d", WRONG, "--bisect"],
    ],
    "evaluate": [["evaluate", "--metric", "digit_metrics:judge", FLOAT, ROWS, "-o", "judged.json"]],
    "evaluate-classification": [
        ["evaluate", "classification", "colours.tflite", *PICTURES, "--against", ""]
    ],
    "predict": [["predict", FLOAT, ROWS, "-o", "answers.jsonl"]],
    "inspect": [
        *(["inspect", model] for model in (FLOAT, INT8, SINES)),
        *(["inspect", model, "--nodes", "--tensors"] for model in (FLOAT, INT8, SINES)),
    ],
    "explain": [
        ["explain", SINES, "-d", "sin"],
        ["explain", INT8, "-d", "add_sub"],
        ["explain", SINES, "-d", "sin", "--memory-limit", "1"],
    ],
    "compile": [["compile", INT8, "-d", "edgetpu", "-o", "compiled.tflite"]],
    "memory": [
        ["memory", FLOAT],
        ["memory", INT8, "--micro", "--budget", "1M"],
        ["memory", SINES, "-d", "sin"],
        ["memory", "chip.tflite", "--micro"],
    ],
    "report": [["report", model, "-d", "sin", "-o", "report.html"] for model in (SINES, INT8)],
    "plugins-list": [["plugins", "list"]],
    "plugins-info": [["plugins", "info", "add_sub"], ["plugins", "info", "sin", "--claims"]],
    "plugins-doctor": [["plugins", "doctor"]],
    "plugins-catalogue": [["plugins", "catalogue"]],
    "cache-list": [["cache", "list"]],
    "cache-warm": [["cache", "warm", SINES]],
    "cache-clear": [["cache", "clear"]],
    "doctor": [["doctor"]],
    "new": [["new", "my_delegate"]],
    "test-operators": [
        ["test-operators", "add_sub", "--cases", "20", "--jobs", "1", *operators]
        for operators in ((), ("--operator", "ADD", "--operator", "MEAN"))  # a caution of MEAN
    ],
    "edgetpu-compile": [["edgetpu", "compile", INT8, "-o", "."]],
    "flex-flexify": [["flex", "flexify", SINES, "-o", "flex.tflite"]],
    "numba-info": [["numba", "info"]],
    "numba-roof": [["numba", "roof", FLOAT, "--threads", "64"]],  # with a caution
}
"""Command lines by the schema of what they print, without ``--json``."""

WITHOUT_EXAMPLE = {
    "evaluate custom": "prints what evaluate prints",
    "evaluate detection": "needs a detector",
    "flex convert": "needs TensorFlow",
    "numba warmup": "compiles for minutes",
    "serve": "ends when it is stopped",
    "test": "prints the scorecard of the conformance kit",
}
"""Commands that have no schema, and why."""


@contextlib.contextmanager
def own_folder() -> Iterator[None]:
    """Run examples in a temporary folder with a temporary cache."""
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"DELEGRAPH_CACHE": str(Path(folder, "cache"))}),
        patch.object(sys, "path", [str(MODELS.parent), *sys.path]),
    ):
        os.chdir(folder)
        write_pictures()
        write_chip_model()
        try:
            yield
        finally:
            os.chdir(before)


def write_pictures() -> None:
    """Write single-colour pictures, their labels, and a model that classifies the colours."""
    colours = ("red", "green", "blue")
    picture, axes = tensor((1, 4, 6, 3)), constant([1, 2], "INT32")
    options = ReducerOptions(keep_dims=False)
    model = one_op_model("MEAN", [picture, axes], [tensor((1, 3))], options, version=2)
    Path("colours.tflite").write_bytes(model)
    for name in ("truth.txt", "labels.txt"):
        Path(name).write_text("\n".join(colours), encoding="utf-8")
    Path("pictures").mkdir()
    for number, colour in enumerate(colours):
        Image.new("RGB", (6, 4), colour).save(f"pictures/{number}.png")


def write_chip_model() -> None:
    """Write a model of one operator as Vela compiles for Ethos-U, which only TFLM runs."""
    commands, x = constant([0] * 16, "UINT8"), tensor((64,), "INT8")
    Path("chip.tflite").write_bytes(one_op_model("ethos-u", [commands, x], [tensor((2,), "INT8")]))
