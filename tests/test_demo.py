"""The showcase runs, its models are what its scripts make, its answers are the official ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.delegation import GraphInfo, NodeInfo, partition_graph_into_independent_node_subsets
from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE
from delegraph.graph import load_model
from delegraph.plugins import installed
from support.language_models import language_model
from support.scripts import script

DEMO = Path(__file__).parents[1] / "docs" / "demo"
MODELS = DEMO / "models"
PLUGINS = {offer.spec.name for offer in installed().offers()}

needs_example = pytest.mark.skipif(
    not {"add_sub", "sin"} <= PLUGINS, reason="delegraph-example is not installed"
)


def run_demo(folder: Path, **environment: str) -> str:
    """Return what the showcase prints, with the default delegates that users have."""
    present = {k: v for k, v in os.environ.items() if k != DEFAULT_DELEGATES_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(DEMO / "demo.py")],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env={**present, "PYTHONIOENCODING": "utf-8", **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the showcase prints into a pipe."""
    return run_demo(tmp_path_factory.mktemp("demo"))


@needs_example
def test_demo_shows_subsets_accuracy_and_placement(shown: str) -> None:
    flat = " ".join(shown.split())
    assert "[SIN]:sin [ADD, MUL] [SIN]:sin [ADD] 2.152495" in flat
    assert "digits_float none 0 of 15 Delegraph 358 (99.44%)" in flat
    assert re.search(r"add_sub 3 of 15, 3 partitions \w+ 358 \(99.44%\) yes", flat)
    assert "digits_int8 none 0 of 15 Delegraph 357 (99.17%)" in flat
    assert "3 ADD add_sub, partition" in flat
    assert "run your.tflite --delegate add_sub" in flat


@pytest.mark.parametrize("offer", installed().offers(), ids=lambda offer: offer.spec.name)
def test_demo_shows_the_subsets_of_each_delegate_as_it_cuts_the_graph_alone(
    offer: Any, shown: str
) -> None:
    """Whatever the default delegate computes of what that one leaves."""
    name = offer.spec.name
    section = shown.split("how a graph is cut")[1].split("f(2)")[1]
    [row] = [line.split() for line in section.splitlines() if line.split()[:1] == [name]][:1]
    assert " ".join(row[1:-1]) == " ".join(subsets_alone(offer.address))


def subsets_alone(delegate: str) -> list[str]:
    """Return the partitioner's subsets of the sines model, as the showcase writes them."""
    graph = load_model(MODELS / "sines.tflite").subgraphs[0]
    with Interpreter(MODELS / "sines.tflite", delegates=[delegate]) as interpreter:
        nodes = interpreter.placement.nodes
    taken = [node.index for node in nodes if node.delegate == delegate.rpartition(":")[2]]
    names = [operator.name for operator in graph.operators]
    info = GraphInfo(
        nodes=[NodeInfo(op.inputs, op.outputs, False) for op in graph.operators],
        execution_plan=list(range(len(names))),
        num_total_nodes=len(names),
        inputs=graph.inputs,
        outputs=graph.outputs,
        variables=[],
    )
    found = []
    for subset in partition_graph_into_independent_node_subsets(
        info, taken, greedily=True, control_edges=None, disable_node_fusion=False
    ):
        owner = f":{delegate.rpartition(':')[2]}" if subset.nodes[0] in taken else ""
        found.append(f"[{', '.join(names[i] for i in subset.nodes)}]{owner}")
    return found


@needs_example
def test_demo_leaves_to_the_default_delegate_what_others_do_not_take(shown: str) -> None:
    digits = shown.split("Handwritten digits")[1].split("What add_sub takes")[0]
    rows = [line.split() for line in digits.splitlines() if "%" in line]
    taken = {row[0]: row[1] for row in rows if row[0] in PLUGINS}
    assert {name: taken[name] for name in ("add_sub", "sin")} == {"add_sub": "0", "sin": "0"}
    assert "What sin takes" not in shown


def test_demo_ends_with_the_path_of_a_report(shown: str) -> None:
    path = Path(shown.splitlines()[-1].strip())
    assert (path.name, path.is_absolute()) == ("report.html", True)
    assert "digits_float.tflite" in path.read_text(encoding="utf-8")


def test_demo_is_plain_text_when_piped(shown: str) -> None:
    assert "\x1b" not in shown


def test_demo_runs_without_any_plugin(tmp_path: Path) -> None:
    flat = " ".join(run_demo(tmp_path, DELEGRAPH_PLUGINS="").split())
    assert "[SIN, ADD, MUL, SIN, ADD] 2.152495" in flat
    assert "digits_float none 0 of 15 Delegraph" in flat


def test_sines_model_is_what_its_script_makes() -> None:
    made = script("demo/make_sines.py").sines_model()
    assert made == (MODELS / "sines.tflite").read_bytes()


def test_language_model_is_what_its_script_makes() -> None:
    assert language_model() == (MODELS / "language_model.tflite").read_bytes()


def test_language_model_has_the_weights_once_for_all_signatures() -> None:
    """Random weights have no two equal buffers: each matrix is in the file once."""
    one, three = (len(language_model(prefill=counts)) for counts in ((8,), (8, 16, 32)))
    assert three - one < 40_000 < one


@pytest.mark.parametrize("x", [-3.0, 0.0, 2.0, 1e3])
def test_sines_model_computes_its_formula(x: float) -> None:
    with Interpreter(MODELS / "sines.tflite") as interpreter:
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array([x], np.float32))
        interpreter.invoke()
        y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(y, [np.sin(x) + x + np.sin(2 * x)], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_digits_models_give_the_official_answers(name: str) -> None:
    """int8 bit for bit; float to what its logits, which reach 80, can hold: 80 / 2**24 = 5e-6.

    The official kernels differ from one another (BUILTIN, BUILTIN_REF, XNNPACK) by up to 7e-7.
    """
    from ai_edge_litert import interpreter as litert

    path = MODELS / f"{name}.tflite"
    kernels = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    official = litert.Interpreter(str(path), experimental_op_resolver_type=kernels)
    demo = script("demo/demo_run.py")
    images = unseen_digits()["images"][:40]
    with Interpreter(path) as ours:
        for interpreter in (ours, official):
            interpreter.allocate_tensors()
        for image in images:
            values = (image[np.newaxis, :, :, np.newaxis] / 16).astype(np.float32)
            expected, got = demo.run(official, values), demo.run(ours, values)
            tolerance = 5e-6 if name == "digits_float" else 0.0
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


def unseen_digits() -> dict[str, NDArray[np.uint8]]:
    with np.load(MODELS / "digits_test.npz") as archive:
        return dict(archive)


def test_test_split_is_small_balanced_and_labelled() -> None:
    test = unseen_digits()
    assert test["images"].shape == (360, 8, 8)
    assert test["images"].max() == 16
    counts = np.bincount(test["labels"], minlength=10)
    assert counts.min() >= 34
    assert sum(path.stat().st_size for path in MODELS.iterdir()) < 400_000


def test_scikit_learn_has_the_same_images() -> None:
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    bundled = datasets.load_digits()
    known = {
        image.astype(np.uint8).tobytes(): d
        for image, d in zip(bundled.images, bundled.target, strict=True)
    }
    test = unseen_digits()
    assert [known[image.tobytes()] for image in test["images"]] == test["labels"].tolist()
