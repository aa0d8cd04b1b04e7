"""Datasets of the NumPy executor: what they refuse, and that those without end can be stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flex_cases
import flex_functions
from delegraph import Interpreter, Limits
from delegraph.errors import CallCancelledError, OperatorError, TimeLimitError
from delegraph_flex.flex_node import NodeEnvironment, Unsupported
from delegraph_flex.node_def import Function
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from flex_cases import Case
from flex_cases.datasets import DATASET, LONG, Reading, kinds
from flex_cases.resources import HANDLE as RESOURCE
from flex_cases.resources import I64, Program

MODEL = Path(__file__).parent / "models" / "dataset.tflite"
ENDLESS = 1 << 62


def long(value: Any) -> np.ndarray:
    return np.array(value, np.int64)


def batch(size: int, *, stop: int = 7, drops: bool = False) -> Reading:
    source = Reading("batch", 0, stop, size=long(size), drops=np.array(drops))
    return source.then("BatchDatasetV2", "size", "drops")


def rows(*components: Any) -> Case:
    p = Program("rows", **{str(i): long(x) for i, x in enumerate(components)}, state=long(1))
    count = len(components)
    types = {"Toutput_types": [LONG] * count, "output_shapes": [None] * count}
    source = p.call("TensorSliceDataset", *map(str, range(count)), out=DATASET, **types)
    attrs = {"f": Function("folded"), "Tstate": [LONG], "Targuments": [], **kinds()}
    return p.case(p.call("ReduceDataset", source, "state", out=I64, **attrs))


def mapped(function: str) -> Reading:
    return Reading("map", size=long(2), no=np.array(False)).then("MapDataset", f=Function(function))


REFUSED: list[tuple[Case, str]] = [
    (Reading("step", 0, 5, 0).end(), "step is 0"),
    (batch(0).end(), "batch_size is 0, expected at least 1"),
    (batch(-1).end(), "batch_size is -1"),
    (mapped("as_long").then("BatchDatasetV2", "size", "no").end(), r"0 and 1 have shapes \[0\]"),
    (rows(3), r"components have shapes \[\[\]\]"),
    (rows([1, 2], [3]), r"components have shapes \[\[2\], \[1\]\]"),
    (Reading("state").end("two"), "the state has 1 parts, the function gives 2"),
    (Reading("few").end("square"), "takes 1, not 2 values"),
    (
        Reading("filter").then("FilterDataset", predicate=Function("square")).end(),
        "does not give one truth value",
    ),
]


@pytest.mark.parametrize(("case", "message"), REFUSED)
def test_bad_data_is_refused(case: Case, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        flex_cases.run(case, NumpyExecutor())


def test_a_function_that_the_model_lacks_is_refused_before_running() -> None:
    with pytest.raises(Unsupported, match="'lost': the model has no subgraph of that name"):
        flex_cases.run(Reading("lost").end("lost"), NumpyExecutor())


def test_a_handle_that_is_no_dataset_is_refused() -> None:
    p = Reading("none", shape=np.array([2], np.int32), most=np.int32(-1))
    attrs = {"element_dtype": LONG, "shape_type": flex_cases.DataType.INT32}
    p.source = p.call("EmptyTensorList", "shape", "most", out=DATASET, **attrs)
    with pytest.raises(ValueError, match="handle is no dataset but a"):
        flex_cases.run(p.end(), NumpyExecutor())


@pytest.mark.parametrize(("made", "message"), [(True, "End of sequence"), (False, "no dataset")])
def test_an_iterator_gives_no_more_than_there_is(made: bool, message: str) -> None:
    p = Reading("iterated", 0, 0)
    reader = p.call("AnonymousIteratorV3", out=RESOURCE, **kinds())
    if made:
        p.call("MakeIterator", p.source, reader)
    case = p.case(p.call("IteratorGetNext", reader, out=I64, **kinds()))
    with pytest.raises(ValueError, match=message):
        flex_cases.run(case, NumpyExecutor())


def test_an_optional_without_an_element_gives_none() -> None:
    p = Reading("optional", 0, 0)
    reader = p.call("AnonymousIteratorV3", out=RESOURCE, **kinds())
    p.call("MakeIterator", p.source, reader)
    none = p.call("IteratorGetNextAsOptional", reader, out=DATASET, **kinds())
    case = p.case(p.call("OptionalGetValue", none, out=I64, **kinds()))
    with pytest.raises(ValueError, match="the optional has no value"):
        flex_cases.run(case, NumpyExecutor())


def test_the_last_state_is_what_the_operator_declares() -> None:
    p = Reading("declared")
    attrs = {"f": Function("folded"), "Tstate": [LONG], "Targuments": [], **kinds(1, (3,))}
    case = p.case(p.call("ReduceDataset", p.source, "state", out=I64, **attrs))
    with pytest.raises(ValueError, match=r"component 0 is int64\[\], expected int64\[3\]"):
        flex_cases.run(case, NumpyExecutor())


def test_the_first_batch_operator_keeps_what_is_left_over() -> None:
    case = Reading("batch", size=long(3)).then("BatchDataset", "size").end()
    assert flex_cases.run(case, NumpyExecutor()) == flex_cases.run(batch(3).end(), NumpyExecutor())


@pytest.mark.parametrize("drops", [False, True])
def test_a_batch_without_end_asks_for_its_memory(drops: bool) -> None:
    with (
        flex_cases.memory_limit(100_000),
        pytest.raises(OperatorError, match=r"a batch of a dataset needs .* limit of 100000"),
    ):
        flex_cases.run(batch(ENDLESS, stop=ENDLESS, drops=drops).end(), NumpyExecutor())


def endless() -> dict[str, Case]:
    """Yield cases in which much work precedes the next call of a function of the model."""
    counts = {"n": long(ENDLESS), "forever": long(-1), "none": long(0), "yes": np.array(True)}

    def numbers(stop: int = ENDLESS) -> Reading:
        return Reading("endless", 0, stop, **counts)

    skipped = numbers().then("SkipDataset", "n")
    repeated = numbers(1).then("RepeatDataset", "forever").then("SkipDataset", "n")
    batched = numbers().then("BatchDatasetV2", "n", "yes")
    return {"skipped": skipped.end(), "repeated": repeated.end(), "batched": batched.end()}


@pytest.mark.parametrize("name", endless())
def test_operators_that_never_end_look_whether_they_shall_stop(name: str) -> None:
    looks = iter(range(1000))

    def raise_if_requested() -> None:
        if next(looks, None) is None:
            raise CallCancelledError("enough")

    around = NodeEnvironment(
        {}, flex_functions.call, flex_functions.signature, raise_if_requested=raise_if_requested
    )
    with pytest.raises(CallCancelledError, match="enough"):
        flex_cases.run(endless()[name], NumpyExecutor(), around)


def test_a_dataset_without_end_is_stopped_by_the_time_limit() -> None:
    delegates: Any = {"flex": {"executor": "numpy"}}
    Interpreter(str(MODEL), delegates=delegates).close()  # what it imports takes time of its own
    with Interpreter(str(MODEL), delegates=delegates, limits=Limits(time=0.2)) as interpreter:
        runner = interpreter.get_signature_runner()
        with pytest.raises(TimeLimitError, match=r"time limit of 0\.2 s"):
            runner(n=long(ENDLESS))
        assert runner(n=long(3))["total"] == 4 * 3 + 2 * 4 + 7
