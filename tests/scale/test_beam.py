"""RunInference with a predictor gives what an interpreter gives, on Beam's own runner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Predictor
from delegraph.errors import ArgumentError, DelegraphError
from support.digits import answers_one_by_one
from support.moody_delegate import moody_setup

beam: Any = pytest.importorskip("apache_beam", reason="Beam is tested by make test-scale-beam")

from apache_beam.ml.inference.base import KeyedModelHandler, PredictionResult, RunInference  # noqa: E402
from apache_beam.options.pipeline_options import PipelineOptions  # noqa: E402
from apache_beam.runners.portability.fn_api_runner import FnApiRunner  # noqa: E402

from delegraph.scale.beam import DelegraphModelHandler, columns_of_examples  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Beam's own

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"
DIGITS = MODELS / "digits_int8.tflite"
PICTURES = np.random.default_rng(0).integers(-128, 128, (50, 8, 8, 1)).astype(np.int8)
WORKERS = {
    "in memory": ["--direct_running_mode=in_memory"],
    "two processes": ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
}


@pytest.fixture(scope="module")
def expected() -> NDArray[Any]:
    """What an interpreter answers to each picture."""
    return answers_one_by_one(PICTURES)


@pytest.fixture(autouse=True)
def _workers_find_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))


def written(folder: Path) -> list[list[str]]:
    """What :func:`write` wrote, in any order."""
    lines = [line for part in folder.glob("*.txt") for line in part.read_text().splitlines()]
    return [line.split("\t") for line in lines]


def run(folder: Path, workers: str, examples: Sequence[Any], *steps: Any) -> Any:
    """Run a pipeline that writes a line for each element; return its result.

    The runner is an object: a name would have Beam look for one that it downloads.
    """
    pipeline = beam.Pipeline(FnApiRunner(), options=PipelineOptions(WORKERS[workers]))
    found = pipeline | beam.Create(examples)
    for step in steps:
        found = found | step
    _ = found | beam.io.WriteToText(str(folder / "part"), ".txt")
    result = pipeline.run()
    result.wait_until_finish()
    return result


def as_line(result: PredictionResult) -> str:
    return f"{result.example['id']}\t{result.inference['digit'].tobytes().hex()}"


def keyed_as_line(pair: tuple[str, PredictionResult]) -> str:
    key, result = pair
    return f"{key}\t{result.inference['digit'].tobytes().hex()}"


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("is_keyed", [False, True], ids=["unkeyed", "keyed"])
def test_each_example_gets_what_an_interpreter_gives(
    tmp_path: Path, expected: NDArray[Any], workers: str, is_keyed: bool
) -> None:
    examples: list[Any] = [{"id": i, "image": image} for i, image in enumerate(PICTURES)]
    handler: Any = DelegraphModelHandler(Predictor(DIGITS), min_batch_size=3, max_batch_size=7)
    if is_keyed:
        examples = [(str(i), example) for i, example in enumerate(examples)]
        handler = KeyedModelHandler(handler)
    line = beam.Map(keyed_as_line if is_keyed else as_line)
    run(tmp_path, workers, examples, RunInference(handler), line)
    found = {int(i): values.strip() for i, values in written(tmp_path)}
    assert len(written(tmp_path)) == len(PICTURES)
    assert found == {i: values.tobytes().hex() for i, values in enumerate(expected)}


def counters(result: Any) -> dict[str, int]:
    found = result.metrics().query()["counters"]
    return {c.key.metric.name: c.committed for c in found if c.key.metric.namespace == "Delegraph"}


def distribution(result: Any, name: str) -> Any:
    found = result.metrics().query()["distributions"]
    return next(d.committed for d in found if d.key.metric.name == name)


def moody_examples(*values: float) -> list[dict[str, Any]]:
    return [{"x": np.array([value, 1], np.float32)} for value in values]


def moody_line(result: PredictionResult) -> str:
    error = result.inference["error"].partition("\n")[0]
    return f"{result.example['x'][0]:g}\t{result.inference['y'][0]:g}\t{error}"


def test_rows_that_fail_or_kill_are_marked_and_counted(tmp_path: Path) -> None:
    predictor = Predictor(moody_setup(tmp_path), on_error="column", isolation="process")
    handler = DelegraphModelHandler(predictor, min_batch_size=4, max_batch_size=4)
    examples = moody_examples(1, 66, 3, 88, 5)
    result = run(tmp_path, "in memory", examples, RunInference(handler), beam.Map(moody_line))
    lines = {float(x): (float(y), error.strip()) for x, y, error in written(tmp_path)}
    assert {x: y for x, (y, error) in lines.items() if not error} == {1: -1, 3: -3, 5: -5}
    assert "SIGSEGV" in lines[66][1]
    assert "88 is too much" in lines[88][1]
    found = counters(result)
    assert (found["num_inferences"], found["bad_rows"], found["lost_processes"]) == (5, 2, 2)
    assert found["delegate_incidents"] == 0
    sizes = distribution(result, "inference_request_batch_size")
    assert (sizes.max, sizes.sum) == (4, 5)
    assert distribution(result, "inference_request_batch_byte_size").sum == 5 * 8


class Parted(beam.PTransform):  # type: ignore[misc]
    """Lines of examples with results, and of batches that were put aside."""

    def __init__(self, handler: DelegraphModelHandler) -> None:
        super().__init__()
        self._handler = handler

    def expand(self, examples: Any) -> Any:
        good, other = examples | RunInference(self._handler).with_exception_handling()
        lines = good | "Good" >> beam.Map(lambda result: f"{-result.inference['y'][0]:g}\tgood")
        bad = other.failed_inferences | "Bad" >> beam.FlatMap(failed_lines)
        return (lines, bad) | beam.Flatten()


def failed_lines(failed: tuple[Sequence[Any], Any]) -> Iterator[str]:
    batch, reason = failed
    for example in batch:
        yield f"{example['x'][0]:g}\t{str(reason[1]).strip()}"


def test_exception_handling_puts_failed_batches_aside(tmp_path: Path) -> None:
    handler = DelegraphModelHandler(Predictor(moody_setup(tmp_path)), max_batch_size=1)
    result = run(tmp_path, "in memory", moody_examples(1, 88, 3), Parted(handler))
    lines = {float(x): text.strip() for x, text in written(tmp_path)}
    assert {x for x, text in lines.items() if text == "good"} == {1, 3}
    assert "88 is too much" in lines[88]
    assert counters(result)["failed_batches_counter"] == 1


def test_a_refreshed_model_is_computed(tmp_path: Path) -> None:
    setup = moody_setup(tmp_path)
    handler = DelegraphModelHandler(Predictor(setup))
    assert handler.load_model().setup.model == setup.model
    handler.update_model_path("")
    assert handler.load_model().setup.model == setup.model
    other = tmp_path / "other.tflite"
    other.write_bytes(Path(setup.model).read_bytes())
    handler.update_model_path(str(other))
    model = handler.load_model()
    (result,) = handler.run_inference(moody_examples(2), model)
    assert result.model_id == str(other)
    np.testing.assert_array_equal(result.inference["y"], [-2, -1])


def test_copies_of_a_model_are_apart() -> None:
    handler = DelegraphModelHandler(Predictor(DIGITS), model_copies=2)
    assert handler.model_copies() == 2
    first, second = handler.load_model(), handler.load_model()
    first({"image": PICTURES[:1]})
    assert (first.metrics.rows, second.metrics.rows) == (1, 0)


def test_batches_are_no_larger_than_the_predictors() -> None:
    predictor = Predictor(DIGITS, max_batch=5)
    assert DelegraphModelHandler(predictor).batch_elements_kwargs() == {"max_batch_size": 5}
    handler = DelegraphModelHandler(predictor, min_batch_size=2, max_batch_size=9)
    assert handler.batch_elements_kwargs() == {"min_batch_size": 2, "max_batch_size": 9}


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="on_error='drop' drops examples without results"):
        DelegraphModelHandler(Predictor(DIGITS, on_error="drop"))
    handler = DelegraphModelHandler(Predictor(DIGITS))
    handler.validate_inference_args({})
    with pytest.raises(ArgumentError, match=r"inference_args \['k'\]: a model takes none"):
        handler.validate_inference_args({"k": 1})
    with pytest.raises(ArgumentError, match=r"different columns: \['a'\] and \['a', 'b'\]"):
        columns_of_examples([{"a": 1}, {"a": 1, "b": 2}])
    with pytest.raises(DelegraphError, match=r"nothing\.tflite"):
        DelegraphModelHandler(Predictor(tmp_path / "nothing.tflite")).load_model()
