"""Makes a failing case smaller as long as it still fails.

Source:
    The search is greedy, as in QuickCheck: it takes the first simpler case that still fails, and
    continues from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import BITS, NUMPY_DTYPES, OBJECT_TYPES
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.schema.table import Table

Array = NDArray[Any]

TRIES = 500
"""Largest number of simpler cases that are tried."""


class Case(Protocol):
    """A model and its inputs: any dataclass with these attributes."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def records(self) -> tables.Model:
        """Records of the model file."""

    @property
    def steps(self) -> tuple[tuple[Array, ...], ...]:
        """Arrays for the graph inputs at each of several consecutive invokes."""

    @property
    def reference(self) -> tables.Model | None:
        """A model with the same interface and right results; None if the case's model is right."""


AnyCase = TypeVar("AnyCase", bound=Case)


def shrunk(case: AnyCase, fails: Callable[[AnyCase], bool], tries: int = TRIES) -> AnyCase:
    """Return the simplest case found that still fails in the same way as *case*.

    *fails* returns whether a simpler case fails in the same way; at most *tries* cases are tried.
    """
    progress = True
    while progress:
        progress = False
        for simpler in simpler_cases(case):
            tries -= 1
            if tries < 0:
                return case
            if fails(simpler):
                case, progress = simpler, True
                break
    return case


def simpler_cases(case: AnyCase) -> Iterator[AnyCase]:
    """Yield slightly simpler cases, the simplest first.

    For a case with a reference, only input values are simplified, because its two models must stay
    alike.
    """
    if len(case.steps) > 1:
        yield replace(case, steps=case.steps[:1])
        yield replace(case, steps=case.steps[:-1])
    if case.reference is not None:
        yield from _plainer_inputs(case)
        return
    if len(case.records.subgraphs or ()) == 1:
        yield from _shorter(case)
    yield from _plainer_inputs(case)
    yield from _plainer_constants(case)
    yield from _plainer_options(case)
    yield from _plainer_quantization(case)


def _shorter(case: AnyCase) -> Iterator[AnyCase]:
    """Yield cases in which all axes of one length are shorter.

    At first these are the axes of all tensors, and then those of one group of tensors.
    """
    tensors = _tensors(case)
    lengths = sorted({n for t in tensors for n in t.shape or () if n > 1}, reverse=True)
    for where in [frozenset(range(len(tensors))), *_groups(case)]:
        for length in lengths:
            for short in sorted({1, length // 2, length - 1}):
                changed = _with_length(case, where, length, short)
                if changed is not None:
                    yield changed


def _groups(case: Case) -> Sequence[frozenset[int]]:
    """Return the tensors in groups: tensors of one shape that an operator reads or writes together.

    They keep one shape, so that no element-wise operator is made broadcasting.
    """
    tensors = _tensors(case)
    group_of = {i: frozenset([i]) for i in range(len(tensors))}
    for operator in _main(case).operators or ():
        used = [i for i in (*(operator.inputs or ()), *(operator.outputs or ())) if i >= 0]
        first_of: dict[tuple[int, ...] | None, int] = {}
        for i in used:
            joined = group_of[i] | group_of[first_of.setdefault(tensors[i].shape, i)]
            group_of |= dict.fromkeys(joined, joined)
    return list(dict.fromkeys(group_of.values()))


def _with_length(case: AnyCase, where: frozenset[int], length: int, short: int) -> AnyCase | None:
    """Return *case* with axes of *length* cut to *short*; None if there is no such axis.

    *where* are the indices of the tensors to cut.
    """
    tensors, buffers, cuts = list(_tensors(case)), list(case.records.buffers or ()), {}
    for i in where:
        shape = tensors[i].shape or ()
        cut = tuple(short if n == length else n for n in shape)
        data = _constant(case, tensors[i])
        if cut == shape or tensors[i].sparsity is not None:
            continue
        if data is not None:
            part = data[tuple(map(slice, cut))]
            buffers[tensors[i].buffer] = tables.Buffer(data=_bytes(part))
        elif buffers[tensors[i].buffer].data is not None:
            continue  # strings and packed integers stay as they are
        tensors[i], cuts[i] = _with_shape(tensors[i], cut), tuple(map(slice, cut))
    if not cuts:
        return None
    inputs = _main(case).inputs or ()
    steps = tuple(
        tuple(a[cuts[i]] if i in cuts else a for i, a in zip(inputs, step, strict=True))
        for step in case.steps
    )
    return replace(_with(case, tensors=tuple(tensors), buffers=tuple(buffers)), steps=steps)


def with_output_shapes(case: AnyCase, shapes: Iterable[tuple[int, ...]]) -> AnyCase:
    """Return *case* with other declared shapes of its graph outputs."""
    tensors = list(_tensors(case))
    for i, shape in zip(_main(case).outputs or (), shapes, strict=True):
        tensors[i] = _with_shape(tensors[i], shape)
    return _with(case, tensors=tuple(tensors))


def _with_shape(record: tables.Tensor, shape: tuple[int, ...]) -> tables.Tensor:
    """Return *record* with another shape, whose signature keeps the unknown dimensions."""
    known = record.shape_signature
    if known is None or len(known) != len(shape):
        return record.replace(shape=shape, shape_signature=None)
    signature = tuple(-1 if a == -1 else n for a, n in zip(known, shape, strict=True))
    return record.replace(shape=shape, shape_signature=signature)


def _plainer_inputs(case: AnyCase) -> Iterator[AnyCase]:
    """Yield cases in which one input array has zeros or rounded floats."""
    for number, step in enumerate(case.steps):
        for i, array in enumerate(step):
            for plain in _plainer(array):
                new = (*step[:i], plain, *step[i + 1 :])
                yield replace(case, steps=(*case.steps[:number], new, *case.steps[number + 1 :]))


def _plainer_constants(case: AnyCase) -> Iterator[AnyCase]:
    """Yield cases in which one constant has zeros or rounded floats."""
    for record in _tensors(case):
        data = _constant(case, record)
        if data is None or data.dtype == np.int32 or data.dtype == np.int64:
            continue  # numbers of axes and the like
        for plain in _plainer(data):
            buffers = list(case.records.buffers or ())
            buffers[record.buffer] = tables.Buffer(data=_bytes(plain))
            yield _with(case, buffers=tuple(buffers))


def _plainer(array: Array) -> Iterator[Array]:
    if array.dtype.kind in "OcV" or not array.size:
        return
    zeros = np.zeros_like(array)
    rounded = array if array.dtype.kind in "biu" else np.round(array.astype(np.float64))
    half = array.copy()
    half.reshape(-1)[: (array.size + 1) // 2] = 0
    for plain in (zeros, half, np.asarray(rounded).astype(array.dtype)):
        if plain.tobytes() != array.tobytes():
            yield plain


def _plainer_options(case: AnyCase) -> Iterator[AnyCase]:
    """Yield cases in which one option of one operator has its default."""
    operators = _main(case).operators or ()
    for i, operator in enumerate(operators):
        for plain in _plainer_operators(operator):
            yield _with(case, operators=(*operators[:i], plain, *operators[i + 1 :]))


def _plainer_operators(operator: tables.Operator) -> Iterator[tables.Operator]:
    for field in ("builtin_options", "builtin_options_2"):
        options: Table | None = getattr(operator, field)
        if options is None:
            continue
        for option, value in zip(options.FIELDS, options, strict=True):
            if isinstance(value, int) and value != option.default:
                plain = options.replace(**{option.name: option.default})
                yield operator.replace(**{field: plain})


def _plainer_quantization(case: AnyCase) -> Iterator[AnyCase]:
    """Yield cases in which one tensor has the scale 1/2 or the zero point 0."""
    tensors = _tensors(case)
    for i, record in enumerate(tensors):
        found = record.quantization
        if found is None or found.scale is None or found.zero_point is None:
            continue
        for plain in (
            found.replace(scale=np.full_like(found.scale, 0.5)),
            found.replace(zero_point=np.zeros_like(found.zero_point)),
        ):
            if plain != found:
                new = record.replace(quantization=plain)
                yield _with(case, tensors=(*tensors[:i], new, *tensors[i + 1 :]))


def _main(case: Case) -> tables.SubGraph:
    return (case.records.subgraphs or ())[0]


def _tensors(case: Case) -> tuple[tables.Tensor, ...]:
    return _main(case).tensors or ()


def _constant(case: Case, record: tables.Tensor) -> Array | None:
    """Return the array of the constant *record*; None for types without arrays, such as strings."""
    data = (case.records.buffers or ())[record.buffer].data
    kind = TensorType(record.type)
    if data is None or kind in BITS or kind in OBJECT_TYPES or record.sparsity is not None:
        return None
    shape, dtype = record.shape or (), NUMPY_DTYPES[kind]
    taken = math.prod(shape) * dtype.itemsize  # a file may hold more
    return (
        np.frombuffer(data[:taken].tobytes(), dtype).reshape(shape) if taken <= len(data) else None
    )


def _bytes(array: Array) -> NDArray[np.uint8]:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _with(case: AnyCase, buffers: Any = None, **changes: Any) -> AnyCase:
    """Return *case* with other buffers, and with the fields *changes* of its main subgraph."""
    first, *others = case.records.subgraphs or ()
    records = case.records.replace(subgraphs=(first.replace(**changes), *others))
    if buffers is not None:
        records = records.replace(buffers=buffers)
    return replace(case, records=records)
