from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import SimpleDelegateKernelInterface
from delegraph.delegation import PlacementRule, Tolerance
from delegraph.errors import ArgumentError
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools import Setup, diff, diff_layers
from delegraph.tools.differing.numerics_profile import rounding
from support.faulty_delegate import Faulty, off_by
from support.layer_models import fed, file
from support.signatures import two_signatures


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """y = (x + x) * x on ``[4], float32``."""
    path = tmp_path / "chain.tflite"
    nodes: list[Any] = [("ADD", "x x", "s"), ("MUL", "s x", "y")]
    path.write_bytes(graph_model(nodes, inputs="x", outputs="y"))
    return str(path)


def test_a_sound_delegate_differs_by_nothing(chain: str) -> None:
    found = diff(Setup(chain, delegates=(Faulty(),)), runs=3)
    assert [d.unequal for d in found.outputs[0].runs] == [0, 0, 0]
    assert found.test_placement.partitions
    assert not found.reference_placement.partitions


def test_a_wrong_delegate_differs_where_it_is_wrong(chain: str) -> None:
    found = diff(Setup(chain, delegates=(Faulty(fault=off_by(1.0)),)), runs=4)
    output = found.outputs[0]
    assert [d.unequal for d in output.runs] == [1] * 4
    assert output.raw()["max"].avg == pytest.approx(1, rel=1e-6)
    assert output.raw()["mean"].avg == pytest.approx(0.25, rel=1e-6)
    assert output.worst.compared is not None
    assert output.worst.compared.index == (3,)
    assert output.worst_run in range(4)
    assert found.test_latency.count == found.reference_latency.count == 4


def test_the_worst_run_is_the_one_to_look_at(chain: str) -> None:
    # One warm-up comes first, so its third run is the second one that counts.
    delegate = Faulty(fault=lambda c, n, run: off_by(5.0 if run == 3 else 0.5)(c, n, run))
    found = diff(Setup(chain, delegates=(delegate,)), inputs=fed(seed=7), runs=4)
    assert found.outputs[0].worst_run == 1
    assert found.runs[1] == "seed 8"


def test_warm_up_runs_are_not_counted(chain: str) -> None:
    delegate = Faulty()
    found = diff(Setup(chain, delegates=(delegate,)), runs=2, warmup=3)
    assert (delegate.runs, found.test_latency.count) == (5, 2)


def test_a_tolerance_says_what_fails(chain: str) -> None:
    setup = Setup(chain, delegates=(Faulty(fault=off_by(1.0)),))
    kept = diff(setup, runs=2, tolerance=Tolerance(absolute=1.01))
    assert (kept.failures, kept.outputs[0].outside) == ((), 0)
    failed = diff(setup, runs=2, tolerance={"": Tolerance(absolute=0.5)})
    assert failed.failures == ("y: 2 of 8 elements",)
    with pytest.raises(ArgumentError, match="given for 'z'; the outputs are 'y'"):
        diff(setup, runs=1, tolerance={"z": Tolerance()})


def test_the_reference_may_be_the_official_interpreter(chain: str) -> None:
    pytest.importorskip("ai_edge_litert")
    found = diff(Setup(chain), Setup(chain, runtime="litert"), runs=2)
    assert found.reference_placement.delegates == ("XNNPACK",)
    assert found.outputs[0].raw()["max"].max < 1e-6


def test_variables_start_from_zero_in_each_run(tmp_path: Path) -> None:
    parts = {"state": tensor((4,), is_variable=True), "w": constant(np.eye(4, dtype=np.float32))}
    parts |= {"r": constant(np.eye(4, dtype=np.float32)), "b": constant(np.zeros(4, np.float32))}
    parts |= {"x": tensor((1, 4)), "state": tensor((1, 4), is_variable=True), "y": tensor((1, 4))}
    content = graph_model([("RNN", "x w r b state", "y")], inputs="x", outputs="y", tensors=parts)
    setup = Setup(file(tmp_path, content, "rnn.tflite"))
    once = diff(setup, inputs=fed(values=("x=1",)), runs=3, warmup=2).outputs[0]
    expected = [d.compared and d.compared.expected for d in once.runs]
    assert expected == [1.0] * 3  # it would be 1, 2, 3 if the state stayed


def quantized_add(folder: Path) -> str:
    parts = {n: tensor((4,), "INT8", scale=1 / 64) for n in ("x", "y")}
    content = graph_model([("ADD", "x x", "y")], inputs="x", outputs="y", tensors=parts)
    return file(folder, content, "int8.tflite")


def test_another_file_is_fed_the_same_numbers(tmp_path: Path) -> None:
    nodes: list[Any] = [("ADD", "x x", "y")]
    real = file(tmp_path, graph_model(nodes, inputs="x", outputs="y"), "f.tflite")
    found = diff(Setup(quantized_add(tmp_path)), Setup(real), inputs=fed(values=("x=8,16,-8,3",)))
    output = found.outputs[0]
    assert output.remarks == ("types differ: int8, reference float32",)
    assert output.raw() == {}
    assert output.real()["max"].max == 0


def test_inputs_are_matched_by_name(tmp_path: Path) -> None:
    ab = graph_model([("SUB", "a b", "y")], inputs="a b", outputs="y")
    ba = graph_model([("SUB", "a b", "y")], inputs="b a", outputs="y")
    found = diff(
        Setup(file(tmp_path, ab, "ab.tflite")), Setup(file(tmp_path, ba, "ba.tflite")), runs=1
    )
    assert found.outputs[0].raw()["max"].max == 0


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            graph_model([("ADD", "x z", "y")], inputs="x z", outputs="y"),
            r"the model has 1 inputs \('x'\), the reference 2 \('x', 'z'\)",
        ),
        (
            graph_model(
                [("ADD", "x x", "y")],
                inputs="x",
                outputs="y",
                tensors={"x": tensor((5,)), "y": tensor((5,))},
            ),
            r"input 'x' \(float32 \[4\]\) and the reference's input 'x' \(float32 \[5\]\)",
        ),
        (
            graph_model(
                [("ADD", "x x", "y")],
                inputs="x",
                outputs="y",
                tensors={"x": tensor((4,), "INT32"), "y": tensor((4,), "INT32")},
            ),
            "cannot take the same values",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_named(
    chain: str, tmp_path: Path, other: bytes, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        diff(Setup(chain), Setup(file(tmp_path, other, "other.tflite")), runs=1)


def test_outputs_of_other_shapes_are_said(chain: str, tmp_path: Path) -> None:
    parts = {"y": tensor((2, 2)), "to": constant([2, 2], "INT32")}
    nodes: list[Any] = [("ADD", "x x", "s"), ("MUL", "s x", "m"), ("RESHAPE", "m to", "y")]
    other = graph_model(nodes, inputs="x", outputs="y", tensors=parts)
    found = diff(
        Setup(chain),
        Setup(file(tmp_path, other, "o.tflite")),
        runs=2,
        tolerance=Tolerance(absolute=9),
    )
    assert found.outputs[0].remarks == ("shapes differ: [4], reference [2, 2]",)
    assert found.failures == ("y: shapes differ: [4], reference [2, 2]",)


def test_outputs_that_one_side_lacks_are_said(chain: str, tmp_path: Path) -> None:
    nodes: list[Any] = [("ADD", "x x", "s"), ("MUL", "s x", "y")]
    other = graph_model(nodes, inputs="x", outputs="s y")
    found = diff(Setup(chain), Setup(file(tmp_path, other, "o.tflite")), runs=1)
    assert [output.name for output in found.outputs] == ["y"]
    assert (found.only_in_test, found.only_in_reference) == ((), ("s",))
    assert found.outputs[0].raw()["max"].max == 0


def test_a_folder_is_a_run_for_each_file(chain: str, tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    names = [f"{letter}.npy" for letter in "gbxadqc"]
    for value, name in enumerate(names):
        np.save(folder / name, np.full(4, value, np.float32))
    found = diff(Setup(chain), inputs=fed(values=(str(folder),)))
    assert [Path(run).name for run in found.runs] == sorted(names)
    values = [d.compared and d.compared.expected for d in found.outputs[0].runs]
    assert values == [2 * names.index(name) ** 2 for name in sorted(names)]
    named = diff(Setup(chain), inputs=fed(values=(f"x={folder}",)))
    assert named.runs[0] == f"x={folder / 'a.npy'}"
    with pytest.raises(ArgumentError, match="holds no files"):
        diff(Setup(chain), inputs=fed(values=(str(_empty(tmp_path)),)))


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_given_values_need_one_run_and_random_ones_fifty(chain: str) -> None:
    assert diff(Setup(chain), inputs=fed(values=("x=1",))).runs == ("x=1",)
    assert len(diff(Setup(chain)).runs) == 50


def test_the_same_seed_gives_the_same_numbers(chain: str) -> None:
    setup = Setup(chain, delegates=(Faulty(fault=off_by(1.0)),))
    worst = [
        diff(setup, inputs=fed(seed=seed), runs=1).outputs[0].worst.compared for seed in (3, 3, 4)
    ]
    assert worst[0] == worst[1]
    assert worst[0] != worst[2]


@pytest.mark.parametrize("runtime", ["delegraph", "litert", "litert2"])
def test_random_indices_out_of_range_are_explained(tmp_path: Path, runtime: Any) -> None:
    parts = {
        "table": constant(np.arange(8, dtype=np.float32)),
        "i": tensor((4,), "INT32"),
        "y": tensor((4,)),
    }
    content = graph_model([("GATHER", "table i", "y")], inputs="i", outputs="y", tensors=parts)
    setup = Setup(file(tmp_path, content, "gather.tflite"), runtime)
    if runtime != "delegraph":
        pytest.importorskip("ai_edge_litert")
    with pytest.raises(RuntimeError, match=r"--distribution run draws small ones"):
        diff(setup, inputs=fed(), runs=1)
    assert diff(setup, inputs=fed(distribution="run"), runs=1).outputs[0].worst.unequal == 0


def test_rules_threads_and_open_shapes_are_those_of_the_set_up(chain: str) -> None:
    rule = PlacementRule("exclude", nodes=1)
    setup = Setup(chain, delegates=(Faulty(),), rules=[rule], threads=2)
    found = diff(setup, runs=1)
    assert [node.delegate for node in found.test_placement.nodes] == ["faulty", None]
    shaped = diff(setup, inputs=fed(shapes={"x": [7]}), runs=1)
    assert shaped.outputs[0].runs[0].count == 7


def test_a_signature_is_called_by_its_names(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    model = file(tmp_path, two_signatures(), "two.tflite")
    found = diff(
        Setup(model), Setup(model, "litert"), signature="wave", inputs=fed(values=("x=0.5",))
    )
    (output,) = found.outputs
    assert output.name == "y"
    assert output.worst.compared is not None
    assert output.worst.compared.expected == pytest.approx(np.sin(0.5))
    with pytest.raises(ArgumentError, match="no signature 'wav'"):
        diff(Setup(model), signature="wav", runs=1)


def test_an_error_says_that_it_is_the_reference_s(tmp_path: Path) -> None:
    parts = {name: tensor((4,), "INT32") for name in ("x", "y")}
    content = graph_model([("MyOp", "x", "y")], inputs="x", outputs="y", tensors=parts)
    model = file(tmp_path, content, "custom.tflite")

    class Mine(Faulty):
        def create_delegate_kernel_interface(self) -> Any:
            return Copies()

    class Copies(SimpleDelegateKernelInterface):
        def init(self, context: Any, params: Any) -> None:
            pass

        def prepare(self, context: Any, node: Any) -> None:
            pass

        def eval(self, context: Any, node: Any) -> None:
            context.tensors[node.outputs[0]].data[...] = context.tensors[node.inputs[0]].data

    with pytest.raises(RuntimeError, match=r"^the reference: .*op: MyOp") as caught:
        diff(Setup(model, delegates=(Mine(),)), runs=1)
    assert "random integers" not in str(caught.value)
    both = Setup(model, delegates=(Mine(),))
    assert diff(both, both, runs=1).outputs[0].worst.unequal == 0


def test_integers_may_differ_from_floats_by_a_step() -> None:
    digits = Path(__file__).parents[3] / "docs" / "demo" / "models"
    small, large = (Setup(str(digits / f"digits_{x}.tflite")) for x in ("int8", "float"))
    step = Tolerance(absolute=1 / 256)  # the scale of the output
    (output,) = diff(small, large, runs=10, tolerance=step).outputs
    assert output.outside == output.beyond_rounding
    assert 0 < (output.outside or 0) < 100
    layers = diff_layers(small, large, tolerance=rounding).layers
    assert not [x.op for x in layers if x.node == 2 and x.same_inputs and x.same_inputs.outside]
