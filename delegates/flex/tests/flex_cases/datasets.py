"""Cases of datasets: each is read to its end by a ``ReduceDataset``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.node_def import Function, Shape
from flex_cases import Case
from flex_cases.resources import Program

LONG, I64, DATASET = DataType.INT64, TensorType.INT64, TensorType.VARIANT


def kinds(count: int = 1, shape: Shape = None) -> dict[str, Any]:
    """Return the attributes for the types and shapes of elements; scalars by default."""
    return {"output_types": [LONG] * count, "output_shapes": [shape] * count}


class Reading(Program):
    """Builds a case of datasets; *source* is the dataset that the next operator reads."""

    def __init__(self, name: str, start: int = 0, stop: int = 7, step: int = 1, **more: Any):
        numbers = {"start": start, "stop": stop, "step": step, "state": 1}
        super().__init__(name, **{k: np.int64(v) for k, v in numbers.items()}, **more)
        self.source = self.call("RangeDataset", *list(numbers)[:3], out=DATASET, **kinds())

    def then(self, op: str, *inputs: Any, count: int = 1, **attrs: Any) -> Reading:
        """Add a dataset operator that reads the last dataset."""
        if "f" in attrs or "predicate" in attrs:
            attrs.setdefault("Targuments", [LONG] * len(inputs))
        self.source = self.call(op, self.source, *inputs, out=DATASET, **kinds(count), **attrs)
        return self

    def end(self, function: str = "folded", *inputs: Any, state: str = "state") -> Case:
        """Return the case that compares the final state of a reduction."""
        last = self.call(
            "ReduceDataset", self.source, state, *inputs, out=I64, f=Function(function),
            Tstate=[LONG], Targuments=[LONG] * len(inputs), **kinds(),
        )  # fmt: skip
        return self.case(last, runs=2)


def cases() -> Iterator[Case]:
    for limits in ((0, 5, 1), (5, 0, -2), (3, 3, 1), (0, 9, -1), (-4, 9, 5), (2**62, 2**62 + 9, 4)):
        yield Reading("range", *limits).end()
    yield Reading("weighed", by=np.int64(3)).end("weighed", "by")
    yield Reading("grown", none=np.zeros(0, np.int64)).end("grown", state="none")
    yield Reading("map").then("MapDataset", f=Function("square")).end()
    with_more = Reading("captured", by=np.int64(10))
    yield with_more.then("MapDataset", "by", f=Function("shifted")).end()
    for op, kind in (("ParallelMapDataset", np.int32), ("ParallelMapDatasetV2", np.int64)):
        parallel = Reading(op, by=np.int64(10), calls=kind(2))
        attrs = {"f": Function("shifted"), "Targuments": [LONG]}
        yield parallel.then(op, "by", "calls", **attrs).end()
    yield Reading("filter").then("FilterDataset", predicate=Function("is_even")).end()
    yield Reading("filter").then("FilterDataset", predicate=Function("all_of_them")).end()
    until = Reading("take while", by=np.int64(4))
    yield until.then("TakeWhileDataset", "by", predicate=Function("is_below")).end()
    scan = Reading("scan", first=np.int64(2), none=np.zeros(0, np.int64))
    yield scan.then(
        "ScanDataset", "first", f=Function("running"), Tstate=[LONG], Targuments=[]
    ).end()
    for size in (1, 3, 7, 100):
        for drops in (False, True):
            batch = Reading("batch", size=np.int64(size), drops=np.array(drops))
            yield batch.then("BatchDatasetV2", "size", "drops").end()
    for op in ("RepeatDataset", "TakeDataset", "SkipDataset"):
        for count in (0, 2, 50, -1):
            if (op, count) != ("RepeatDataset", -1):
                yield Reading(op, n=np.int64(count)).then(op, "n").end()
    forever = Reading("forever", n=np.int64(-1), most=np.int64(11))
    yield forever.then("RepeatDataset", "n").then("TakeDataset", "most").end()
    nothing = Reading("nothing, forever", 0, 0, n=np.int64(-1))
    yield nothing.then("RepeatDataset", "n").end()
    ahead = (
        Reading("ahead", n=np.int64(2))
        .then("PrefetchDataset", "n")
        .then("OptionsDataset", serialized_options=b"")
    )
    yield ahead.end()
    yield from _tensors()
    yield from _several()
    yield from _iterated()


def _tensors() -> Iterator[Case]:
    x = np.arange(6).reshape(3, 2)
    for op, shape in (("TensorDataset", (3, 2)), ("TensorSliceDataset", (2,))):
        p = Program(op, x=x, state=np.int64(1))
        types = {"Toutput_types": [LONG], "output_shapes": [shape]}
        source = p.call(op, "x", out=DATASET, **types)
        folded = {"f": Function("folded"), "Tstate": [LONG], "Targuments": [], **kinds()}
        yield p.case(p.call("ReduceDataset", source, "state", out=I64, **folded), runs=2)


def _several() -> Iterator[Case]:
    p = Reading("joined", n=np.int64(3))
    taken = p.then("TakeDataset", "n").source
    p.source = p.call("ConcatenateDataset", taken, taken, out=DATASET, **kinds())
    yield p.end()
    p = Reading("side by side", n=np.int64(3))
    all_of_them = p.source
    few = p.then("SkipDataset", "n").source
    p.source = p.call("ZipDataset", all_of_them, few, out=DATASET, N=2, **kinds(2))
    yield p.end("paired")


def _iterated() -> Iterator[Case]:
    """Yield cases of iterators, each of which gives two elements."""
    for op in ("IteratorV2", "AnonymousIteratorV2", "AnonymousIteratorV3"):
        p = Reading(op)
        names = {"container": b"", "shared_name": b"all"} if op == "IteratorV2" else {}
        has_deleter = op == "AnonymousIteratorV2"
        out = [TensorType.RESOURCE, DATASET][: 1 + has_deleter]
        reader, *deleter = p.call(op, out=out, **names, **kinds())
        p.call("MakeIterator", p.source, reader)
        elements = [
            p.call(get, reader, out=I64, **kinds())
            for get in ("IteratorGetNext", "IteratorGetNextSync")
        ]
        if has_deleter:
            p.call("DeleteIterator", reader, *deleter)
        yield p.case(*elements, runs=2)
    p = Reading("optional", 0, 1)
    reader = p.call("AnonymousIteratorV3", out=TensorType.RESOURCE, **kinds())
    p.call("MakeIterator", p.source, reader)
    one, none = (
        p.call("IteratorGetNextAsOptional", reader, out=DATASET, **kinds()) for _ in range(2)
    )
    found = [p.call("OptionalHasValue", x, out=TensorType.BOOL) for x in (one, none)]
    yield p.case(*found, p.call("OptionalGetValue", one, out=I64, **kinds()))
