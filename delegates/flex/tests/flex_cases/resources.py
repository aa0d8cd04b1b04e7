"""Cases of lists of tensors, variables and tables: several operators, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Call, Case, strings

F32, I32, I64 = TensorType.FLOAT32, TensorType.INT32, TensorType.INT64
LIST, HANDLE = TensorType.VARIANT, TensorType.RESOURCE


class Program:
    """Builds a case call by call; values are identified by their positions."""

    def __init__(self, name: str, **inputs: Any) -> None:
        self._name = name
        self._inputs = [np.asarray(value) for value in inputs.values()]
        self._calls: list[Call] = []
        self._next = len(self._inputs)
        self.values = {key: i for i, key in enumerate(inputs)}

    def call(self, op: str, *inputs: int | str, out: Any = (), **attrs: Any) -> Any:
        """Add an operator and return the position of its output, or a list of several."""
        types = (out,) if isinstance(out, TensorType) else tuple(out)
        places = tuple(self.values[i] if isinstance(i, str) else i for i in inputs)
        self._calls.append(Call(op, attrs, places, types))
        made = list(range(self._next, self._next + len(types)))
        self._next += len(types)
        return made[0] if isinstance(out, TensorType) else made

    def case(self, *outputs: int, runs: int = 1) -> Case:
        """Return the case that compares *outputs*."""
        return Case(self._name, self._inputs, self._calls, outputs, runs=runs)


def cases() -> Iterator[Case]:
    yield from _lists()
    yield _variables()
    yield from _tables()


def _lists() -> Iterator[Case]:
    x: NDArray[Any] = np.arange(12, dtype=np.float32).reshape(4, 3)
    kind = {"element_dtype": DataType.FLOAT32}
    shaped = {**kind, "shape_type": DataType.INT32}
    p = Program("pushing", x=x[0], y=x[1], shape=np.array([3], np.int32), most=np.int32(-1))
    a = p.call("EmptyTensorList", "shape", "most", out=LIST, **shaped)
    a = p.call("TensorListPushBack", a, "x", out=LIST, **kind)
    b = p.call("TensorListPushBack", a, "y", out=LIST, **kind)
    c, last = p.call("TensorListPopBack", b, "shape", out=[LIST, F32], **kind)
    length = p.call("TensorListLength", b, out=I32)
    shorter = p.call("TensorListLength", c, out=I32)
    shape = p.call("TensorListElementShape", b, out=I32, shape_type=DataType.INT32)
    stacked = p.call("TensorListStack", b, "shape", out=F32, num_elements=2, **kind)
    yield p.case(last, length, shorter, shape, stacked)

    p = Program(
        "setting",
        x=x[0],
        shape=np.array([3], np.int32),
        n=np.int32(4),
        i=np.int32(2),
        open=np.int32(-1),
        more=np.int32(6),
        some=np.array([2, 0], np.int32),
    )
    a = p.call("TensorListReserve", "shape", "n", out=LIST, **shaped)
    b = p.call(
        "TensorListSetItem", a, "i", "x", out=LIST, resize_if_index_out_of_bounds=False, **kind
    )
    got = p.call("TensorListGetItem", b, "i", "shape", out=F32, **kind)
    stacked = p.call("TensorListStack", b, "open", out=F32, num_elements=-1, **kind)
    longer = p.call("TensorListResize", b, "more", out=LIST)
    length = p.call("TensorListLength", longer, out=I32)
    chosen = p.call("TensorListGather", b, "some", "shape", out=F32, **kind)
    joined = p.call("TensorListConcatLists", b, longer, out=LIST, **kind)
    both = p.call("TensorListLength", joined, out=I32)
    yield p.case(got, stacked, length, chosen, both)

    p = Program(
        "whole",
        x=x,
        shape=np.array([3], np.int32),
        at=np.array([3, 0, 1, 2], np.int32),
        n=np.int32(5),
        rows=np.array([-1, 3], np.int32),
        lengths=np.array([1, 3, 0], np.int64),
    )
    a = p.call("TensorListFromTensor", "x", "shape", out=LIST, **shaped)
    stacked = p.call("TensorListStack", a, "shape", out=F32, num_elements=-1, **kind)
    b = p.call("TensorListScatter", "x", "at", "shape", out=LIST, **shaped)
    c = p.call("TensorListScatterV2", "x", "at", "shape", "n", out=LIST, **shaped)
    d = p.call("TensorListScatterIntoExistingList", a, "x", "at", out=LIST, **kind)
    of = [
        p.call("TensorListStack", v, "shape", out=F32, num_elements=-1, **kind) for v in (b, c, d)
    ]
    e = p.call("TensorListSplit", "x", "rows", "lengths", out=LIST, **shaped)
    f, sizes = p.call("TensorListConcatV2", e, "rows", "lengths", out=[F32, I64], **shaped)
    g, more = p.call("TensorListConcat", e, out=[F32, I64], element_shape=(-1, 3), **kind)
    yield p.case(stacked, *of, f, sizes, g, more)


def _variables() -> Case:
    p = Program("variable", x=np.float32([1, 2]), y=np.float32([10, 20]))
    handle = p.call(
        "VarHandleOp",
        out=HANDLE,
        container=b"",
        shared_name=b"v",
        dtype=DataType.FLOAT32,
        shape=(2,),
        allowed_devices=[],
    )
    before = p.call("VarIsInitializedOp", handle, out=TensorType.BOOL)
    kind = {"dtype": DataType.FLOAT32}
    p.call("AssignVariableOp", handle, "x", validate_shape=False, **kind)
    p.call("AssignAddVariableOp", handle, "y", **kind)
    p.call("AssignSubVariableOp", handle, "x", **kind)
    after = p.call("VarIsInitializedOp", handle, out=TensorType.BOOL)
    value = p.call("ReadVariableOp", handle, out=F32, **kind)
    shape = p.call("VariableShape", handle, out=I64, out_type=DataType.INT64)
    return p.case(before, after, value, shape, runs=2)


def _tables() -> Iterator[Case]:
    names = strings([b"one", b"two", b"three"])
    types = {"key_dtype": DataType.STRING, "value_dtype": DataType.INT64}
    pair = {"Tin": DataType.STRING, "Tout": DataType.INT64}
    named = {"container": b"", "use_node_name_sharing": False}
    p = Program(
        "table",
        keys=names,
        values=np.array([1, 2, 3]),
        default=np.int64(-1),
        asked=strings([[b"two", b"?"], [b"one", b"three"]]),
    )
    table = p.call("HashTableV2", out=HANDLE, shared_name=b"t", **named, **types)
    p.call("InitializeTableV2", table, "keys", "values", Tkey=DataType.STRING, Tval=DataType.INT64)
    found = p.call("LookupTableFindV2", table, "asked", "default", out=I64, **pair)
    size = p.call("LookupTableSizeV2", table, out=I64)
    yield p.case(found, size)

    p = Program(
        "mutable",
        keys=names,
        values=np.array([1, 2, 3]),
        default=np.int64(-1),
        gone=names[1:2],
        new=strings([b"four"]),
        four=np.array([4]),
    )
    table = p.call("MutableHashTableV2", out=HANDLE, shared_name=b"m", **named, **types)
    at_first = p.call("LookupTableSizeV2", table, out=I64)
    p.call("LookupTableInsertV2", table, "keys", "values", **pair)
    p.call("LookupTableRemoveV2", table, "gone", Tin=DataType.STRING)
    p.call("LookupTableInsertV2", table, "new", "four", **pair)
    found = p.call("LookupTableFindV2", table, "keys", "default", out=I64, **pair)
    size = p.call("LookupTableSizeV2", table, out=I64)
    yield p.case(at_first, found, size, runs=2)

    p = Program("import", keys=names[:1], values=np.array([5]), default=np.int64(0))
    table = p.call("MutableHashTableV2", out=HANDLE, shared_name=b"i", **named, **types)
    p.call("LookupTableImportV2", table, "keys", "values", **pair)
    keys, values = p.call(
        "LookupTableExportV2",
        table,
        out=[TensorType.STRING, I64],
        Tkeys=DataType.STRING,
        Tvalues=DataType.INT64,
    )
    yield p.case(keys, values)
