"""The commands: files, reports, JSON, exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import ActivationFunctionType, Interpreter
from delegraph.schema.options import AddOptions
from delegraph.testing import CommandResult, run_command
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.extras import install_command
from flex_models import FLOAT, flex_model, results

SINES = Path(__file__).parents[3] / "docs" / "demo" / "models" / "sines.tflite"
NEEDS_TENSORFLOW = pytest.mark.skipif(not has_tensorflow(), reason="TensorFlow is not installed")
FUNCTIONS = """
import tensorflow as tf
from beside import SHAPE

@tf.function(input_signature=[tf.TensorSpec(SHAPE, name="x")])
def f(x):
    print("tracing")
    return tf.math.erf(x) + tf.sin(x)

@tf.function(input_signature=[tf.TensorSpec(SHAPE)])
def unlisted(x):
    return tf.math.digamma(x)

number = 3
"""


def flexify(*arguments: object) -> CommandResult:
    return run_command("flex", "flexify", *arguments)


def convert(*arguments: object) -> CommandResult:
    return run_command("flex", "convert", *arguments)


# -- flexify -----------------------------------------------------------------------------------


def test_flexified_model_is_written_and_runs(tmp_path: Path) -> None:
    path = tmp_path / "out.tflite"
    done = flexify(SINES, "-o", path)
    assert (done.code, done.err) == (0, "")
    size = path.stat().st_size
    assert f"{size / 1000:.1f} kB, operators: 0 builtin, 5 of TensorFlow" in done.out
    x = np.array([0.5], np.float32)
    (expected,) = results(Interpreter(str(SINES)), x)
    (y,) = results(Interpreter(str(path), delegates=["flex:executor=numpy"]), x)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_report_says_what_became_of_each_operator_and_what_runs_it(tmp_path: Path) -> None:
    fused = AddOptions(fused_activation_function=ActivationFunctionType.SIGN_BIT)
    nodes = [
        ("ADD", "x x", "a", fused),
        ("SIN", "a", "b", None),
        ("FlexReadFile", "b", "c", {}),
        ("FlexDecodeJpeg", "c", "y", FLOAT),
    ]
    model, path = tmp_path / "mixed.tflite", tmp_path / "out.tflite"
    model.write_bytes(flex_model(nodes, inputs="x", outputs="y"))
    text = [" ".join(line.split()) for line in flexify(model, "-o", path).out.splitlines()]
    assert "DecodeJpeg 1 tensorflow" in text
    refused = "nothing, as it reads or writes files; allow=ReadFile lets it run"
    assert f"ReadFile 1 {refused}" in text
    assert "Sin 1 numpy, tensorflow" in text
    assert "1 SIN Sin 1" in text
    assert any(line.startswith("1 ADD ") for line in text[text.index("Left as it is") :])


def test_nodes_are_chosen_by_name_and_index(tmp_path: Path) -> None:
    path = tmp_path / "out.tflite"
    done = flexify(SINES, "-o", path, "--node", "SIN", "--node", 2, "--json")
    record = json.loads(done.out)
    assert record["path"] == str(path)
    assert record["bytes"] == path.stat().st_size
    assert record["builtin"] == 2
    assert [use["name"] for use in record["flex"]] == ["Mul", "Sin"]
    assert record["flex"][1] == {"name": "Sin", "count": 2, "numpy": True, "refused": ""}
    assert [change["node"] for change in record["rewritten"]] == [0, 2, 3]
    assert record["left"][0] == {"node": 1, "operator": "ADD", "reason": None}


def test_a_model_in_a_bundle_is_rewritten(tmp_path: Path) -> None:
    bundle, path = tmp_path / "x.task", tmp_path / "out.tflite"
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.write(SINES, "m")
    assert flexify(f"{bundle}#m", "-o", path).code == 0
    assert flexify(SINES, "-o", tmp_path / "plain.tflite").code == 0
    assert path.read_bytes() == (tmp_path / "plain.tflite").read_bytes()


def test_output_is_named_after_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert flexify(SINES).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["sines_flex.tflite"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([SINES, "--node", "COS"], 2, "no operator 'COS'; there are ADD, MUL, SIN"),
        ([SINES, "--node", 9], 2, "no node 9; there are 5"),
        ([SINES, "--node", "SIM"], 2, "no operator 'SIM' (did you mean 'SIN'?); there are"),
        (["no.tflite"], 2, "Could not open 'no.tflite': No such file"),
        ([SINES, "-o", "no/folder/x.tflite"], 2, "cannot write 'no/folder/x.tflite'"),
        ([__file__], 1, f"{__file__}: "),
        ([SINES.with_name("digits_int8.tflite")], 1, "can be rewritten: CONV_2D: tensor 0 is"),
    ],
)
def test_what_goes_wrong_is_one_line_on_standard_error(
    arguments: list[Any], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = flexify(*arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_model_itself_is_never_overwritten(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    shutil.copy(SINES, model)
    done = flexify(model, "-o", model)
    assert (done.code, model.read_bytes()) == (2, SINES.read_bytes())
    assert "is the model itself: give -o another name" in done.err


# -- convert -----------------------------------------------------------------------------------


@pytest.mark.skipif(has_tensorflow(), reason="TensorFlow is installed")
def test_without_tensorflow_the_error_has_the_remedy() -> None:
    done = convert("saved_model")
    assert (done.code, done.out) == (3, "")
    assert f"not installed: {install_command('tensorflow')}" in done.err


def test_help_tells_the_exit_codes() -> None:
    for command in ("convert", "flexify"):
        assert "3  TensorFlow is not installed" in run_command("flex", command, "--help").out


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    (tmp_path / "beside.py").write_text("SHAPE = (2, 3)\n")
    return path


def converted(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Convert in a child process, because TensorFlow writes to file descriptors."""
    words = [sys.executable, "-m", "delegraph", "flex", "convert", *map(str, arguments)]
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=200
    )


@NEEDS_TENSORFLOW
def test_a_function_of_a_python_file_is_converted_without_a_word(functions: Path) -> None:
    done = converted(functions.parent, "functions.py:f", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert (record["path"], [use["name"] for use in record["flex"]]) == ("f.tflite", ["Erf"])
    interpreter = Interpreter(str(functions.with_name("f.tflite")))
    assert results(interpreter, np.zeros((2, 3), np.float32))[0].tolist() == [[0.0] * 3] * 2


@NEEDS_TENSORFLOW
def test_what_tensorflow_says_is_shown_when_asked_for(functions: Path) -> None:
    done = converted(functions.parent, "functions.py:f", "-v", "--operators", "tensorflow")
    assert done.returncode == 0
    assert "tracing" in done.stderr
    assert "tracing" not in done.stdout
    assert "operators: 0 builtin," in done.stdout


@NEEDS_TENSORFLOW
@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("functions.py:unlisted", 1, "'tf.Digamma' op is neither a custom op nor a flex op"),
        ("functions.py:unlisted", 1, "(--allow-all lets operators through"),
        ("functions.py:number", 2, "3 is no model: expected a SavedModel's folder"),
        ("functions.py:missing", 2, "'functions.py' defines no 'missing'"),
        ("no.py:f", 2, "no Python file 'no.py'"),
        ("nothing", 2, "no SavedModel and no Keras file at 'nothing'"),
        (".", 2, "no SavedModel in the folder '.': it has no saved_model.pb"),
    ],
)
def test_what_cannot_be_converted_is_said_in_one_line(
    functions: Path, monkeypatch: pytest.MonkeyPatch, source: str, code: int, message: str
) -> None:
    monkeypatch.chdir(functions.parent)
    done = convert(source)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert done.err.count("\n") == 1


@NEEDS_TENSORFLOW
def test_unlisted_operators_are_let_through_and_run(
    functions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(functions.parent)
    assert convert("functions.py:unlisted", "--allow-all", "-o", "d.tflite").code == 0
    (y,) = results(Interpreter("d.tflite"), np.ones((2, 3), np.float32))
    np.testing.assert_allclose(y, np.full((2, 3), -0.5772157), rtol=1e-6)


@NEEDS_TENSORFLOW
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras
def test_saved_models_and_keras_models_are_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tf = pytest.importorskip("tensorflow")
    monkeypatch.chdir(tmp_path)
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2, "softplus")])
    model.save("net.keras")
    module = tf.Module()
    spec = [tf.TensorSpec([4])]
    module.one = tf.function(tf.math.erf, input_signature=spec)
    module.two = tf.function(tf.math.erfc, input_signature=spec)
    tf.saved_model.save(module, "saved", {"one": module.one, "two": module.two})
    assert convert("net.keras").code == 0
    assert convert("saved", "--signature", "one", "-o", "one.tflite").code == 0
    assert "--signature" in convert("saved", "--help").out
    assert list(Interpreter("one.tflite").get_signature_list()) == ["one"]
    x = np.random.default_rng(1).normal(size=(1, 4)).astype(np.float32)
    (y,) = results(Interpreter("net.tflite"), x)
    np.testing.assert_allclose(y, model(x).numpy(), rtol=1e-5)
    mistyped = convert("saved", "--signature", "on")
    assert mistyped.code == 2
    assert "'saved': Invalid signature key 'on' found. Valid keys are 'one,two'." in mistyped.err
    wrong = convert("net.keras", "--signature", "one", "-o", "x.tflite")
    assert (wrong.code, Path("x.tflite").exists()) == (2, False)
    assert "signatures are those of a SavedModel" in wrong.err
