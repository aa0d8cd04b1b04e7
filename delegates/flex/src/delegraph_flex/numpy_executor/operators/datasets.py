"""Operators that make datasets, and operators that read a whole dataset.

Source:
    core/kernels/data: range_dataset_op.cc, batch_dataset_op.cc, reduce_dataset_op.cc, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import Taken, require
from delegraph_flex.numpy_executor.dataset import (
    Dataset,
    Element,
    check_element,
    dataset_of,
    fits,
    function_of,
    kept,
)
from delegraph_flex.numpy_executor.indices import check_scalar
from delegraph_flex.numpy_executor.registry import REAL, functions, operator, step_of_node

Array = NDArray[Any]


def _number(value: Array, name: str) -> int:
    check_scalar(value, name)
    return int(value)


def _read(node: FlexNode, handle: Any) -> Iterator[Element]:
    """Yield the elements of the dataset *handle*, and check for a stop request before each."""
    stop = node.around.raise_if_requested
    for element in dataset_of(handle).read():
        stop()
        yield element


@operator("RangeDataset")
def range_dataset(node: FlexNode) -> Step:
    """Function that makes a dataset of the numbers from start to before stop, by a step."""
    (type,) = node.types("output_types") or (DataType.INT64,)
    if type not in REAL:
        raise Unsupported(f"RangeDataset of {type.name}", "dtype")
    dtype = type.dtype

    def run(start: Array, stop: Array, step: Array) -> Dataset:
        by = _number(step, "step")
        if by == 0:
            raise ValueError("step is 0")
        numbers = range(_number(start, "start"), _number(stop, "stop"), by)
        return Dataset(lambda: ((np.asarray(i, np.int64).astype(dtype),) for i in numbers))

    return run


@step_of_node("TensorDataset")
def tensor_dataset(node: FlexNode, *components: Any) -> Dataset:
    """Return a dataset with one element: the node's inputs."""
    check_element(components, node, "Toutput_types")
    element = tuple(map(kept, components))
    return Dataset(lambda: iter([element]))


@operator("TensorSliceDataset")
def tensor_slice_dataset(node: FlexNode) -> Step:
    """Function that makes a dataset of the inputs' rows; inputs have equal numbers of rows."""
    shapes = node.shapes("output_shapes")

    def run(*components: Array) -> Dataset:
        if any(np.ndim(x) == 0 for x in components) or len({len(x) for x in components}) != 1:
            found = [list(np.shape(x)) for x in components]
            raise ValueError(f"components have shapes {found}, expected one number of rows")
        for x, shape in zip(components, shapes, strict=True):
            if not fits(x.shape[1:], shape):
                raise ValueError(f"rows have shape {list(x.shape[1:])}, expected {shape}")
        held = [kept(x) for x in components]
        return Dataset(lambda: zip(*(map(np.asarray, _rows(x)) for x in held), strict=True))

    return run


def _rows(x: Array) -> Iterator[Array]:
    """Yield the rows of *x* as arrays, even if the rows are single strings."""
    return (x[i : i + 1].reshape(x.shape[1:]) for i in range(len(x)))


@operator("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2")
def map_dataset(node: FlexNode) -> Step:
    """Return a function that makes a dataset from another by applying a function to each element.

    The applied function also gets the captured inputs.
    """
    function = function_of(node)
    extra = 0 if node.op == "MapDataset" else 1  # number of parallel calls, which is 1 here

    def run(source: Any, *captured: Any) -> Dataset:
        dataset_of(source)
        beside = tuple(map(kept, captured[: len(captured) - extra]))
        return Dataset(lambda: (function((*x, *beside)) for x in _read(node, source)))

    return run


def _predicate(node: FlexNode) -> Callable[[Element], bool]:
    """Return the function in the attribute ``predicate``, which computes a single truth value."""
    function = function_of(node, "predicate")

    def holds(values: Element) -> bool:
        results = function(values)
        if len(results) != 1 or np.size(results[0]) != 1 or results[0].dtype != np.bool_:
            raise ValueError("the predicate does not give one truth value")
        return bool(results[0])

    return holds


@operator("FilterDataset")
def filter_dataset(node: FlexNode) -> Step:
    """Return a function that makes a dataset of the elements for which a predicate is true."""
    is_kept = _predicate(node)

    def run(source: Any, *captured: Any) -> Dataset:
        dataset_of(source)
        beside = tuple(map(kept, captured))
        return Dataset(lambda: (x for x in _read(node, source) if is_kept((*x, *beside))))

    return run


@operator("TakeWhileDataset")
def take_while_dataset(node: FlexNode) -> Step:
    """Function that makes a dataset of the elements before the first whose predicate is false."""
    goes_on = _predicate(node)

    def run(source: Any, *captured: Any) -> Dataset:
        dataset_of(source)
        beside = tuple(map(kept, captured))

        def read() -> Iterator[Element]:
            for element in _read(node, source):
                if not goes_on((*element, *beside)):
                    return
                yield element

        return Dataset(read)

    return run


@operator("ScanDataset")
def scan_dataset(node: FlexNode) -> Step:
    """Return a function that makes a dataset by a running function.

    The running function computes the next state and a result from the state and an element.
    """
    function, count = function_of(node), len(node.types("Tstate"))

    def run(source: Any, *rest: Any) -> Dataset:
        dataset_of(source)
        first, beside = tuple(map(kept, rest[:count])), tuple(map(kept, rest[count:]))

        def read() -> Iterator[Element]:
            state = first
            for element in _read(node, source):
                results = function((*state, *element, *beside))
                state = results[:count]
                yield results[count:]

        return Dataset(read)

    return run


@step_of_node("BatchDataset", "BatchDatasetV2")
def batch_dataset(node: FlexNode, source: Any, size: Array, drops: Any = False) -> Dataset:
    """Return a dataset of batches; a smaller last batch is kept or dropped."""
    dataset_of(source)
    count = _number(size, "batch_size")
    if count <= 0:
        raise ValueError(f"batch_size is {count}, expected at least 1")

    def read() -> Iterator[Element]:
        elements = _read(node, source)
        while rows := _taken(islice(elements, count)):
            if len(rows) == count or not drops:
                yield tuple(_stacked(column) for column in zip(*rows, strict=True))

    return Dataset(read)


def _taken(elements: Iterator[Element]) -> list[Element]:
    """Return all elements as a list; the memory limit is checked for each element."""
    memory, rows = Taken("a batch of a dataset"), []
    for element in elements:
        memory.add(sum(getattr(x, "nbytes", 0) + _OVERHEAD for x in element))
        rows.append(element)
    return rows


_OVERHEAD = 128
"""Number of bytes of an array without its elements."""


def _stacked(column: tuple[Any, ...]) -> Array:
    shape = np.shape(column[0])
    for i, value in enumerate(column):
        if not isinstance(value, np.ndarray):
            raise ValueError("handles cannot be made a batch")
        if value.shape != shape:
            raise ValueError(f"elements 0 and {i} have shapes {list(shape)}, {list(value.shape)}")
    require((len(column), *shape), column[0].dtype)
    return np.stack(column)


@step_of_node("RepeatDataset")
def repeat_dataset(node: FlexNode, source: Any, count: Array) -> Dataset:
    """Return a dataset of repeated elements; a negative count repeats without end."""
    dataset_of(source)
    times = _number(count, "count")

    def read() -> Iterator[Element]:
        left = times
        while left != 0:
            element = None
            for element in _read(node, source):
                yield element
            if element is None:
                return
            left -= 1

    return Dataset(read)


@step_of_node("TakeDataset")
def take_dataset(node: FlexNode, source: Any, count: Array) -> Dataset:
    """Return a dataset of the first elements; of all for a negative count."""
    dataset_of(source)
    most = _number(count, "count")
    return Dataset(lambda: islice(_read(node, source), None if most < 0 else most))


@step_of_node("SkipDataset")
def skip_dataset(node: FlexNode, source: Any, count: Array) -> Dataset:
    """Return a dataset without the first elements; it is empty for a negative count."""
    dataset_of(source)
    least = _number(count, "count")
    if least < 0:
        return Dataset(lambda: iter(()))
    return Dataset(lambda: islice(_read(node, source), least, None))


@step_of_node("ConcatenateDataset")
def concatenate_dataset(node: FlexNode, first: Any, second: Any) -> Dataset:
    """Return a dataset of the elements of a first dataset, then those of a second."""
    one, other = dataset_of(first), dataset_of(second)
    return Dataset(lambda: chain(_read(node, one), _read(node, other)))


@step_of_node("ZipDataset")
def zip_dataset(node: FlexNode, *sources: Any) -> Dataset:
    """Return a dataset of tuples from several datasets, as long as the shortest."""
    datasets = [dataset_of(source) for source in sources]
    return Dataset(
        lambda: (
            tuple(chain.from_iterable(row))
            for row in zip(*(_read(node, x) for x in datasets), strict=False)
        )
    )


# Options of datasets such as prefetching have no effect here.
functions(
    dict.fromkeys(("PrefetchDataset", "OptionsDataset"), lambda source, *_: dataset_of(source))
)


@operator("ReduceDataset")
def reduce_dataset(node: FlexNode) -> Step:
    """Function that reduces a dataset by a function of a state and an element."""
    function, count = function_of(node), len(node.types("Tstate"))

    def run(source: Any, *rest: Any) -> list[Any]:
        state, beside = tuple(map(kept, rest[:count])), rest[count:]
        for element in _read(node, source):
            results = function((*state, *element, *beside))
            if len(results) != count:
                raise ValueError(f"the state has {count} parts, the function gives {len(results)}")
            state = results
        check_element(state, node)
        return list(state)

    return run
