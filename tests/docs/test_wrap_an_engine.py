"""The guide *Wrap an engine* shows what is written, and prints what its engine does."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from delegraph.schema.options import BatchMatMulOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.tools.scaffold import Project, write_project
from support.fake_distributions import write_distribution

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "wrap-an-engine.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE))
ENGINE = "src/delegraph_my_ort/engine.py"
NEEDS_ENGINE = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")),
    reason="ONNX Runtime is not installed: pip install onnx onnxruntime",
)
TRANSPOSED = BatchMatMulOptions(adj_x=True)
START = "    attributes: dict[str, Any] ="
SWAPPED = """\
    if operator.name == "CONV_2D" and names[1] in constants:
        constants[names[1]] = constants[names[1]].swapaxes(2, 3)
"""
RESHAPE = '    if operator.name == "RESHAPE":\n'
LAST = "    return [helper.make_node(OPERATORS"
COUNT = """
import onnxruntime
from delegraph import Interpreter
from delegraph.testing import one_op_model, tensor
from delegraph_my_ort import engine

class Session(onnxruntime.InferenceSession):
    def __init__(self, content, options):
        print(options.intra_op_num_threads)
        super().__init__(content, options)

engine.ort.InferenceSession = Session
for threads in (None, 3):
    content = one_op_model("ABS", [tensor((4,))], [tensor((4,))])
    Interpreter(model_content=content, delegates=["my_ort"], num_threads=threads)
"""
MISTAKES = {
    "layout": [(START, SWAPPED + START)],
    "padding": [
        (
            'attributes["pads"] = [*(w.before for w in windows), *(w.after for w in windows)]',
            'same = operator.options.padding.name == "SAME"\n'
            '        attributes["auto_pad"] = "SAME_UPPER" if same else "VALID"',
        )
    ],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my-ort"
    write_project(Project.of("my-ort", ["ADD", "MUL"], "engine", "onnxruntime"), folder)
    points = {"my_ort": "delegraph_my_ort.plugin"}
    write_distribution(folder / "src", "delegraph-my-ort", {}, points)
    return folder


def run(project: Path, *words: str, folder: Path) -> str:
    """Run a module of Python where the project is installed, and return what it prints."""
    path = os.pathsep.join([str(project / "src"), *filter(None, sys.path)])
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DELEGRAPH_", "PYTEST"))}
    given = {"PYTHONPATH": path, "DELEGRAPH_CACHE": str(project / "cache"), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=inherited | given | {"DELEGRAPH_DEFAULT_DELEGATES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_guide_shows_what_new_writes(project: Path) -> None:
    for name in ("src/delegraph_my_ort/delegate.py", ENGINE):
        assert BLOCKS[name] == (project / name).read_text(encoding="utf-8"), name


@NEEDS_ENGINE
def test_explain_prints_what_the_guide_shows(project: Path) -> None:
    command, *shown = BLOCKS["explain"].splitlines()
    words = command.removeprefix("$ ").split()
    assert run(project, *words, folder=ROOT).splitlines()[: len(shown)] == shown


@NEEDS_ENGINE
@pytest.mark.timeout(300)
def test_the_hint_is_how_to_claim_what_stays(project: Path) -> None:
    words = BLOCKS["explain"].splitlines()[0].removeprefix("$ ").split()
    assert BLOCKS["hint"] in run(project, *words, folder=ROOT)
    for name, changes in {
        ENGINE: [
            ('"MUL": "Mul",', '"MEAN": "ReduceMean", "MUL": "Mul",'),
            (RESHAPE, BLOCKS["translation"] + RESHAPE),
        ],
        "src/delegraph_my_ort/delegate.py": [
            ('{"DEQUANTIZE",', '{"DEQUANTIZE", "MEAN",'),
            ('Claim("RESHAPE"', f'{BLOCKS["claim"].strip()},\n        Claim("RESHAPE"'),
        ],
    }.items():
        text = (project / name).read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (project / name).write_text(text, encoding="utf-8")
    assert "my_ort takes 15 in 1 partition" in run(project, *words, folder=ROOT)
    printed = run(project, "pytest", "-q", "-k", "test_numbers and MEAN", folder=project)
    assert "my_ort: passed" in printed, printed


@NEEDS_ENGINE
def test_the_delegate_runs_in_the_official_interpreter(project: Path) -> None:
    model = "docs/demo/models/digits_float.tflite"
    words = ("delegraph", "run", model, "--delegate", "my_ort", "--runtime", "litert", "--json")
    assert '"digit"' in run(project, *words, folder=ROOT)


@NEEDS_ENGINE
@pytest.mark.timeout(300)
def test_the_project_passes_its_tests(project: Path) -> None:
    printed = run(project, "pytest", "-q", "--delegate-quick", folder=project)
    assert "my_ort: passed" in printed, printed
    assert "failed" not in printed.splitlines()[-1]


@NEEDS_ENGINE
@pytest.mark.timeout(300)
@pytest.mark.parametrize("operator", ["CONV_2D", "DEQUANTIZE", "RESHAPE"])
def test_everything_that_the_project_claims_is_taken(project: Path, operator: str) -> None:
    words = ("-q", "-k", f"test_claims_are_executed and {operator} and not DEPTHWISE")
    assert run(project, "pytest", *words, folder=project).splitlines()[-1].startswith("1 passed")


@NEEDS_ENGINE
def test_a_session_has_the_interpreters_number_of_threads(project: Path) -> None:
    (project / "count.py").write_text(COUNT, encoding="utf-8")
    assert run(project, "count", folder=project).split() == ["1", "3"]


@NEEDS_ENGINE
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_kit_finds_the_mistakes(project: Path, mistake: str) -> None:
    text = (project / ENGINE).read_text(encoding="utf-8")
    for right, wrong in MISTAKES[mistake]:
        assert right in text
        text = text.replace(right, wrong)
    (project / ENGINE).write_text(text, encoding="utf-8")
    printed = run(project, "pytest", "-q", "-k", "test_numbers and -CONV_2D", folder=project)
    for line in (BLOCKS[mistake] + BLOCKS["again"]).splitlines():
        assert line in printed.replace(f"{project}/", ""), printed


@NEEDS_ENGINE
@pytest.mark.timeout(300)
@pytest.mark.parametrize("example", ["reject", "several nodes"])
def test_products_of_transposed_matrices_are_left_or_translated(
    project: Path, example: str
) -> None:
    engine, delegate = project / ENGINE, project / "src/delegraph_my_ort/delegate.py"
    text = engine.read_text(encoding="utf-8")
    text = text.replace('"ADD": "Add",', '"ADD": "Add", "BATCH_MATMUL": "MatMul",')
    if example == "several nodes":
        text = text.replace(LAST, BLOCKS[example] + LAST)
    else:
        words = delegate.read_text(encoding="utf-8") + "\n" + BLOCKS[example]
        names = "import (\n    Node,\n    Registration,\n    Rejection,\n"
        delegate.write_text(words.replace("import (\n", names), encoding="utf-8")
    engine.write_text(text, encoding="utf-8")
    model = one_op_model(
        "BATCH_MATMUL", [tensor((3, 2)), tensor((3, 4))], [tensor((2, 4))], TRANSPOSED
    )
    (project / "model.tflite").write_bytes(model)
    words = ("delegraph", "explain", "model.tflite", "--delegate", "my_ort")
    printed = run(project, *words, folder=project)
    assert ("my_ort takes 1 in 1" in printed) == (example == "several nodes"), printed
    printed = run(project, "pytest", "-q", "-k", "test_numbers and BATCH", folder=project)
    assert "my_ort: passed" in printed, printed


@NEEDS_ENGINE
def test_float16_weights_come_into_the_partition(project: Path) -> None:
    half = constant(np.float16([[1, 2], [3, 4]]))
    (project / "model.tflite").write_bytes(
        graph_model(
            [("DEQUANTIZE", "half", "w"), ("FULLY_CONNECTED", "x w", "y")],
            inputs="x",
            outputs="y",
            tensors={"half": half, "w": tensor((2, 2)), "x": tensor((1, 2)), "y": tensor((1, 2))},
        )
    )
    words = ("delegraph", "explain", "model.tflite", "--delegate", "my_ort")
    assert "my_ort takes 2 in 1 partition" in run(project, *words, folder=project)
