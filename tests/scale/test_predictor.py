"""A predictor computes what an interpreter computes row by row, however rows become calls."""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, PredictionError
from delegraph.scale.batching import SIZES_KEPT
from delegraph.scale.predictor import Predictor
from delegraph.schema import options as o
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools.setup import Setup
from support.digits import answers_one_by_one
from support.signatures import two_signatures

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"
DIGITS = MODELS / "digits_int8.tflite"


def pictures(rows: int, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(-128, 128, (rows, 8, 8, 1)).astype(np.int8)


@pytest.mark.parametrize("batching", ["auto", "resize", "rows"])
@pytest.mark.parametrize("rows", [1, 2, 7, 33])
def test_every_way_of_batching_gives_the_same(batching: Any, rows: int) -> None:
    images = pictures(rows)
    images.flags.writeable = False
    predictor = Predictor(DIGITS, batching=batching, max_batch=16)
    for _ in range(2):  # the first batch decides, the second follows
        batch = predictor({"id": np.arange(rows), "image": images})
        np.testing.assert_array_equal(batch["digit"], answers_one_by_one(images))
        np.testing.assert_array_equal(batch["id"], np.arange(rows))
        assert list(batch) == ["id", "image", "digit"]


def test_a_misspelt_keyword_is_told_with_the_right_one() -> None:
    with pytest.raises(TypeError, match=r"argument 'delegate' \(did you mean 'delegates'\?\)$"):
        Predictor(DIGITS, delegate=["numba_cpu"])  # type: ignore[call-arg]  # the mistake


def test_a_pickled_one_is_its_arguments() -> None:
    predictor = Predictor(DIGITS, delegates=["numba_cpu"], outputs={"digit": "scores"})
    images = pictures(3)
    expected = predictor({"image": images})
    packed = pickle.dumps(predictor)
    assert len(packed) < 2000
    again = pickle.loads(packed)
    assert again.metrics.batches == 0
    np.testing.assert_array_equal(again({"image": images})["scores"], expected["scores"])
    assert again.fingerprint() == predictor.fingerprint()


# -- models that take no batches -------------------------------------------------------------------


def saved(folder: Path, content: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return path


def total(folder: Path) -> Path:
    """The sum over the first axis: a batch of rows would become one."""
    tensors = {"x": tensor((1, 3)), "axis": constant(np.zeros(1, np.int32)), "y": tensor((1, 3))}
    node = ("SUM", "x axis", "y", o.ReducerOptions(keep_dims=True))
    return saved(folder, graph_model([node], inputs="x", outputs="y", tensors=tensors))


def flat(folder: Path) -> Path:
    """A constant shape that holds for one row."""
    shape = constant(np.array([1, 4], np.int32))
    tensors = {"x": tensor((1, 2, 2)), "shape": shape, "y": tensor((1, 4))}
    node = ("RESHAPE", "x shape", "y", o.ReshapeOptions(new_shape=[1, 4]))
    return saved(folder, graph_model([node], inputs="x", outputs="y", tensors=tensors))


def lookup(folder: Path) -> Path:
    """Rows of a table of 10; other positions are an error."""
    table = constant(np.arange(20, dtype=np.float32).reshape(10, 2))
    tensors = {"x": tensor((1,), "INT32"), "table": table, "y": tensor((1, 2))}
    node = ("GATHER", "table x", "y", o.GatherOptions())
    return saved(folder, graph_model([node], inputs="x", outputs="y", tensors=tensors))


@pytest.mark.parametrize("model", [total, flat])
def test_a_model_that_mixes_rows_gets_them_answers_one_by_one(model: Any, tmp_path: Path) -> None:
    predictor = Predictor(model(tmp_path))
    shape = (5, 3) if model is total else (5, 2, 2)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for _ in range(2):
        np.testing.assert_array_equal(predictor({"x": x})["y"], x.reshape(5, -1))
    assert predictor.batching == "rows"


@pytest.mark.parametrize("runtime", ["litert", "litert2"])
@pytest.mark.parametrize("delegates", [None, ["none"]])
def test_an_official_runtime_that_resizes_nothing_gets_one_row_a_call(
    runtime: Any, delegates: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ai_edge_litert")
    x = np.arange(20, dtype=np.float32).reshape(5, 2, 2)
    setup = Setup(str(flat(tmp_path)), runtime=runtime, delegates=delegates)
    with Predictor(setup) as predictor:
        for _ in range(2):
            np.testing.assert_array_equal(predictor({"x": x})["y"], x.reshape(5, -1))
        assert predictor.batching == "rows"
    assert capfd.readouterr().err == ""


def test_a_row_on_which_an_official_runtime_fails_is_bad(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    setup = Setup(str(lookup(tmp_path)), runtime="litert")
    with Predictor(setup, on_error="column") as predictor:
        found = predictor({"x": np.array([[1], [99], [2]], np.int32)})
    assert found["y"][[0, 2]].reshape(2, 2).tolist() == [[2, 3], [4, 5]]
    assert found["error"][1].startswith("the official runtime fails: gather index out of bounds")


def test_rows_that_are_alike_decide_nothing(tmp_path: Path) -> None:
    axis = constant(np.zeros((), np.int32))
    tensors = {"x": tensor((1, 3)), "axis": axis, "y": tensor((1, 3))}
    node = ("CUMSUM", "x axis", "y", o.CumsumOptions())
    model = saved(tmp_path, graph_model([node], inputs="x", outputs="y", tensors=tensors))
    predictor = Predictor(model)
    for x in (np.zeros((4, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)):
        for _ in range(2):
            np.testing.assert_array_equal(predictor({"x": x})["y"], x)
    assert predictor.batching == "rows"


def test_a_row_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    weights = constant(np.ones((1, 1), np.float32))
    tensors = {
        "x": tensor((1, 1)),
        "w": weights,
        "r": weights,
        "b": constant(np.zeros(1, np.float32)),
        "state": tensor((1, 1), is_variable=True),
        "y": tensor((1, 1)),
    }
    node = ("RNN", "x w r b state", "y", o.RNNOptions())
    model = saved(tmp_path, graph_model([node], inputs="x", outputs="y", tensors=tensors))
    x = np.array([[1], [2], [4]], np.float32)
    for batching in ("rows", "auto"):
        predictor = Predictor(model, batching=batching)  # type: ignore[arg-type]
        for _ in range(2):
            np.testing.assert_array_equal(predictor({"x": x})["y"], x)


def test_a_batch_asked_for_in_vain_is_an_error(tmp_path: Path) -> None:
    predictor = Predictor(total(tmp_path), batching="resize")
    with pytest.raises(ArgumentError, match="takes no batches; batching='rows'"):
        predictor({"x": np.ones((2, 3), np.float32)})


def test_a_fixed_size_is_filled(tmp_path: Path) -> None:
    node = ("NEG", "x", "y")
    tensors = {"x": tensor((4, 2)), "y": tensor((4, 2))}
    model = saved(tmp_path, graph_model([node], inputs="x", outputs="y", tensors=tensors))
    predictor = Predictor(model)
    for rows in (1, 4, 7):
        x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        np.testing.assert_array_equal(predictor({"x": x})["y"], -x)
    assert predictor.batching == "pad"


def test_rows_may_have_the_shape_of_the_whole_input() -> None:
    images = pictures(3)
    found = Predictor(DIGITS)({"image": images[:, np.newaxis]})["digit"]
    np.testing.assert_array_equal(found, answers_one_by_one(images)[:, np.newaxis])


def test_rows_may_differ_in_shape(tmp_path: Path) -> None:
    tensors = {"x": tensor((1, 1), shape_signature=(1, -1)), "y": tensor((1, 1))}
    model = graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors)
    x = np.empty(3, object)
    x[:] = [np.arange(size, dtype=np.float32) for size in (1, 3, 2)]
    for isolation in ("none", "process"):
        with Predictor(saved(tmp_path, model), isolation=isolation) as predictor:  # type: ignore[arg-type]
            for row, y in zip(x, predictor({"x": x})["y"], strict=True):
                np.testing.assert_array_equal(y, -row)


def test_lists_of_another_length_in_each_row_stay_lists(tmp_path: Path) -> None:
    tensors = {"x": tensor((1,), "INT32"), "y": tensor((1,), "INT32", shape_signature=(-1,))}
    tensors |= {"begin": constant(np.int32(0)), "step": constant(np.int32(1))}
    tensors |= {"none": constant(np.zeros(0, np.int32)), "end": tensor((), "INT32")}
    nodes = [
        ("RESHAPE", "x none", "end", o.ReshapeOptions(new_shape=[])),
        ("RANGE", "begin end step", "y", o.RangeOptions()),
    ]
    model = saved(tmp_path, graph_model(nodes, inputs="x", outputs="y", tensors=tensors))
    found = Predictor(model)({"x": np.array([3, 1, 2], np.int32)})
    assert [row.tolist() for row in found["y"]] == [[0, 1, 2], [0], [0, 1]]


def test_interpreters_of_many_sizes_are_let_go(tmp_path: Path) -> None:
    predictor = Predictor(lookup(tmp_path), batching="resize")
    for rows in range(1, 2 * SIZES_KEPT):
        x = np.arange(rows, dtype=np.int32) % 10
        np.testing.assert_array_equal(predictor({"x": x})["y"][:, 0], 2 * x)


# -- rows on which the model fails -----------------------------------------------------------------

BAD = np.array([1, 99, 3, 4, -5, 6], np.int32)


def test_the_first_bad_row_is_named(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="row 1: ") as caught:
        Predictor(lookup(tmp_path))({"x": BAD})
    assert caught.value.row == 1


def test_bad_rows_get_a_reason(tmp_path: Path) -> None:
    predictor = Predictor(lookup(tmp_path), on_error="column")
    batch = predictor({"x": BAD, "id": np.arange(6)})
    assert [bool(reason) for reason in batch["error"]] == [False, True, False, False, True, False]
    assert np.isnan(batch["y"][[1, 4]]).all()
    np.testing.assert_array_equal(batch["y"][[0, 2, 3, 5], 0], [2, 6, 8, 12])
    assert (predictor.metrics.rows, predictor.metrics.errors) == (6, 2)
    assert list(predictor({"x": BAD[:1]})["error"]) == [""]


def test_bad_rows_are_left_out(tmp_path: Path) -> None:
    batch = Predictor(lookup(tmp_path), on_error="drop")({"x": BAD, "id": np.arange(6)})
    np.testing.assert_array_equal(batch["id"], [0, 2, 3, 5])
    np.testing.assert_array_equal(batch["y"][:, 0], [2, 6, 8, 12])


def test_rows_that_do_not_fit_are_bad_rows() -> None:
    good = pictures(1)[0].astype(np.int32).tolist()
    none, ragged = deepcopy(good), deepcopy(good)
    none[0][0], ragged[0] = [None], [[1], [1, 2]]
    batch = {"image": [good, good[:4], none, ragged, good], "id": np.arange(5)}
    with pytest.raises(ArgumentError, match=r"row 1: .* of column 'image' has shape \[4, 8, 1\]"):
        Predictor(DIGITS)(batch)
    found = Predictor(DIGITS, on_error="column")(batch)
    assert [reason[:60] != "" for reason in found["error"]] == [False, True, True, True, False]
    assert "holds a missing value" in found["error"][2]
    assert "has parts of different lengths" in found["error"][3]
    np.testing.assert_array_equal(found["digit"][0], found["digit"][4])
    assert Predictor(DIGITS, on_error="drop")(batch)["id"].tolist() == [0, 4]
    nothing = Predictor(DIGITS, on_error="column")({"image": np.array([None, good], object)[:1]})
    assert found["digit"].dtype == nothing["digit"].dtype


@pytest.mark.parametrize("rows", [0, 2])
def test_without_a_good_row_columns_have_their_types(rows: int, tmp_path: Path) -> None:
    bad = np.full(rows, 99, np.int32)
    batch = Predictor(lookup(tmp_path), on_error="column")({"x": bad})
    assert (batch["y"].shape, batch["y"].dtype) == ((rows, 2), np.float32)


@pytest.mark.parametrize("isolation", ["none", "process"])
@pytest.mark.parametrize("shape", [(1,), ()])
def test_a_batch_without_rows_has_the_shapes_of_one_with_rows(
    isolation: Any, shape: tuple[int, ...]
) -> None:
    with Predictor(MODELS / "sines.tflite", isolation=isolation) as predictor:
        three, none = (predictor({"x": np.ones((n, *shape), np.float32)})["y"] for n in (3, 0))
    assert (none.shape, none.dtype) == ((0, *three.shape[1:]), three.dtype)


def test_a_batch_without_rows_of_a_padded_model_has_the_shapes_of_one_row(tmp_path: Path) -> None:
    tensors = {"x": tensor((4, 2)), "y": tensor((4, 2))}
    model = graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors)
    predictor = Predictor(saved(tmp_path, model))
    assert predictor({"x": np.ones((0, 2), np.float32)})["y"].shape == (0, 2)


def test_inputs_and_outputs_have_the_names_of_their_tensors_too(tmp_path: Path) -> None:
    model = saved(tmp_path, two_signatures())  # x and y in the signature, in and out in the file
    for given in ({"inputs": {"in": "a"}, "outputs": {"out": "b"}}, {"inputs": {"x": "a"}}):
        predictor = Predictor(model, signature="wave", **given)  # type: ignore[arg-type]
        batch = predictor({"a": np.zeros((3, 1), np.float32)})
        assert list(batch) == ["a", "b" if "outputs" in given else "y"]


def test_two_names_of_one_output_are_an_error(tmp_path: Path) -> None:
    model = saved(tmp_path, two_signatures())
    predictor = Predictor(model, signature="wave", outputs={"y": "a", "out": "b"})
    with pytest.raises(ArgumentError, match="of y, out, two are names of the same output"):
        predictor({"x": np.zeros((3, 1), np.float32)})


def test_a_missing_row_stays_none() -> None:
    predictor = Predictor(MODELS / "sines.tflite", on_error="column")
    found = predictor({"x": [[0.0], None, [2.0]]})  # type: ignore[dict-item]
    assert found["x"][1] is None
    assert "missing value" in found["error"][1]


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({}, "at least one column"),
        (pictures(2), "a batch is a mapping, {'image': array}, not ndarray"),
        ([1, 2], "a batch is a mapping, {'image': array}, not list"),
        ({"image": 3}, "'image' is a single value"),
        ({"image": pictures(2), "id": [1]}, "numbers of rows: 'image' 2, 'id' 1"),
        ({"imagee": pictures(2)}, "no column 'image' for input .* columns are imagee"),
        ({"image": pictures(2), "digit": [1, 2]}, "'digit' is there already, and an output"),
        ({"image": pictures(2)[:, :4]}, r"has shape \[4, 8, 1\], expected \[8, 8, 1\]"),
        (
            {"image": pictures(2).astype(np.float32)},
            "holds float32 from -128 to 127, expected int8, or real",
        ),
        (
            {"image": np.ones((2, 8, 8, 1), np.uint8)},
            r"'image' holds uint8, .* float32, or array\.astype\(np\.int8\) of integers as",
        ),
    ],
)
def test_batches_that_do_not_fit(batch: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Predictor(DIGITS)(batch)


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="delegates are names"):
        Predictor(DIGITS, delegates=[object()])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match=r'write outputs=\{"y": "column"\}'):
        Predictor(DIGITS, outputs=["y"])  # type: ignore[arg-type]
    for wrong, found in ((None, "None"), (b"TFL3", "4 bytes")):
        with pytest.raises(ArgumentError, match=f"path of a model file, or a Setup, not {found}"):
            Predictor(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="max_batch is 0"):
        Predictor(DIGITS, max_batch=0)
    with pytest.raises(ArgumentError, match=r"delegates is a list; write delegates=\['sin'\]"):
        Predictor(DIGITS, delegates="sin")
    with pytest.raises(ArgumentError, match="on_error is 'ignore'"):
        Predictor(DIGITS, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a Setup includes its delegates"):
        Predictor(Setup(str(DIGITS)), delegates=["numba_cpu"])
    with pytest.raises(ArgumentError, match="no input 'imag'"):
        Predictor(DIGITS, inputs={"imag": "photo"}).warm_up()
    with pytest.raises(ArgumentError, match=r"no output 'digits'.*did you mean 'digit'"):
        Predictor(DIGITS, outputs={"digits": "y"}).warm_up()
    with pytest.raises(ArgumentError, match=r"'p' and 'q' have the same column 's'"):
        Predictor(DIGITS, outputs={"p": "s", "q": "s"})
    with pytest.raises(ArgumentError, match="batching is 'no', expected 'auto', 'resize', 'pad'"):
        Predictor(DIGITS, batching="no")  # type: ignore[arg-type]
    tensors = {"x": tensor(()), "y": tensor(())}
    model = graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors)
    with pytest.raises(ArgumentError, match="same fixed first dimension"):
        Predictor(saved(tmp_path, model), batching="pad").warm_up()


def test_it_prints_as_its_set_up() -> None:
    text = repr(Predictor("digits.tflite", delegates=["sin"]))
    assert text == "<Predictor digits.tflite, sin, 1 thread>"


def test_a_fingerprint_changes_with_what_results_depend_on(tmp_path: Path) -> None:
    other = saved(tmp_path, DIGITS.read_bytes() + b" ")
    predictors = [
        Predictor(DIGITS),
        Predictor(other),
        Predictor(DIGITS, delegates=["numba_cpu"]),
        Predictor(DIGITS, delegates=["numba_cpu:exact=false"]),
        Predictor(DIGITS, signature="serving_default"),
        Predictor(DIGITS, outputs={"digit": "scores"}),
        Predictor(DIGITS, on_error="drop"),
    ]
    prints = [predictor.fingerprint() for predictor in predictors]
    assert len(set(prints)) == len(prints)
    same = saved(tmp_path, DIGITS.read_bytes())
    assert Predictor(same).fingerprint() == prints[0]
