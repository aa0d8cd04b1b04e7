"""Cases of operators that look at shapes or change them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import ALL, COMPLEX, NUMBERS
from flex_cases import Case, one, strings

_F32, _I32, _I64 = DataType.FLOAT32, DataType.INT32, DataType.INT64
_SAME = ("Identity", "Snapshot", "StopGradient", "DeepCopy", "GuaranteeConst")


def cases() -> Iterator[Case]:
    yield from _identities()
    yield from _sizes()
    yield from _reshapes()
    yield from _transposes()
    yield from _broadcasts()
    yield from _bitcasts()
    yield from _formats()
    yield from _serialized()
    yield from _fingerprints()


def sample(type: DataType, shape: tuple[int, ...]) -> np.ndarray:
    """Return different values of any type."""
    count = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
    if type is DataType.STRING:
        return np.array([b"%d" % i for i in count.flat], object).reshape(shape)
    if type is DataType.BOOL:
        return count % 3 == 0
    return (count * (1 - 1j if type in COMPLEX else 1)).astype(type.dtype)


def _identities() -> Iterator[Case]:
    for type in sorted(ALL):
        x = sample(type, (2, 3))
        for op in _SAME:
            if (op, type) != ("Snapshot", DataType.STRING):  # TensorFlow has no kernel
                yield one(op, x, T=type)
        yield one("PreventGradient", x, T=type, message=b"no gradient")
        yield one("EnsureShape", x, T=type, shape=(2, -1))
    x = sample(_F32, (2, 0))
    for shape in ((2, 0), None, (-1, -1)):
        yield one("EnsureShape", x, T=_F32, shape=shape)
    yield one("PlaceholderWithDefault", x, dtype=_F32, shape=(2, 0))
    yield one("DebugGradientIdentity", x, T=_F32)
    types = (_F32, DataType.STRING, _I64)
    yield one(
        "IdentityN",
        *(sample(type, (2,)) for type in types),
        T=list(types),
        out=[TensorType[type.name] for type in types],
    )


def _sizes() -> Iterator[Case]:
    for type in (_F32, DataType.STRING, DataType.BOOL):
        for shape in ((), (3,), (2, 0, 4), (1, 2, 3, 2)):
            x = sample(type, shape)
            for out in (_I32, _I64):
                yield one("Shape", x, T=type, out_type=out, out=TensorType[out.name])
                yield one("Size", x, T=type, out_type=out, out=TensorType[out.name])
            yield one("Rank", x, T=type, out=TensorType.INT32)
    for out in (_I32, _I64):
        arrays = [sample(_F32, shape) for shape in ((), (2, 3), (0,))]
        yield one("ShapeN", *arrays, N=3, T=_F32, out_type=out, out=[TensorType[out.name]] * 3)


def _reshapes() -> Iterator[Case]:
    for type in sorted(ALL):
        x = sample(type, (2, 3, 2))
        yield one("Reshape", x, np.int32([4, 3]), T=type, Tshape=_I32)
    x = sample(_F32, (2, 3, 2))
    for shape in ([-1], [3, -1, 2], [12], [1, 2, 6]):
        yield one("Reshape", x, np.array(shape), T=_F32, Tshape=_I64)
    for shape in ([0, -1], [2, -1], [-1, 0], [0, 5], [-1], [0, 0, -1]):
        yield one("Reshape", sample(_F32, (0, 2)), np.int32(shape), T=_F32, Tshape=_I32)
    yield one("Reshape", x[0, 0, :1], np.zeros(0, np.int32), T=_F32, Tshape=_I32)
    yield one("Reshape", np.float32(3), np.int32([1, -1]), T=_F32, Tshape=_I32)
    yield one("Reshape", x, np.int32(12), T=_F32, Tshape=_I32, name="Reshape-to-scalar-shape")
    thin = sample(_F32, (1, 2, 1, 3, 1))
    for dims in ([], [0], [2, -1], [-3, 0], [0, 2, 4]):
        yield one("Squeeze", thin, T=_F32, squeeze_dims=dims)
    yield one("Squeeze", strings([[b"a"]]), T=DataType.STRING)
    for axis in (0, 1, 3, -1, -4):
        for index, type in ((np.int32, _I32), (np.int64, _I64)):
            yield one("ExpandDims", x, index(axis), T=_F32, Tdim=type)
    yield one("ExpandDims", np.float32(3), np.int32(0), T=_F32, Tdim=_I32)
    yield one("ExpandDims", x, np.int32([1]), T=_F32, Tdim=_I32, name="ExpandDims-vector")


def _transposes() -> Iterator[Case]:
    for op in ("Transpose", "ConjugateTranspose"):
        for type in sorted(ALL):
            yield one(op, sample(type, (2, 3, 2)), np.int32([2, 0, 1]), T=type, Tperm=_I32)
        x = sample(_F32, (2, 3, 0, 1))
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [3, 0, 1, 2]):
            yield one(op, x, np.array(order), T=_F32, Tperm=_I64)
        yield one(op, np.float32(2), np.zeros(0, np.int32), T=_F32, Tperm=_I32)


def _broadcasts() -> Iterator[Case]:
    shapes = [([2, 3], [3]), ([2, 1, 3], [4, 1]), ([], [2]), ([1], []), ([0, 1], [1, 3]), ([], [])]
    for x, y in shapes:
        for dtype, type in ((np.int32, _I32), (np.int64, _I64)):
            a, b = np.array(x, dtype), np.array(y, dtype)
            out = TensorType[type.name]
            yield one("BroadcastArgs", a, b, T=type, out=out)
            yield one("BroadcastGradientArgs", a, b, T=type, out=[out, out])


def _bitcasts() -> Iterator[Case]:
    types = sorted(NUMBERS)
    data = np.random.default_rng(1).integers(0, 120, (2, 16), np.uint8)
    for source in types:
        x = data.view(source.dtype)
        for target in types:
            ratio = target.dtype.itemsize // source.dtype.itemsize
            shaped = x.reshape(2, -1, ratio) if ratio > 1 else x
            if max(ratio, 1) * source.dtype.itemsize <= 16:
                yield one(
                    "Bitcast", shaped, T=source, type=target, out=TensorType[target.name]
                )  # fmt: skip
    yield one("Bitcast", np.float32(1), T=_F32, type=_I32, out=TensorType.INT32)
    yield one("Bitcast", x[:0], T=types[-1], type=DataType.INT8, out=TensorType.INT8)


def _formats() -> Iterator[Case]:
    for source, target in ((b"NHWC", b"NCHW"), (b"NCHW", b"NHWC"), (b"NHWC", b"HWNC")):
        formats = {"src_format": source, "dst_format": target}
        for dtype, type in ((np.int32, _I32), (np.int64, _I64)):
            for axes in ([0, 1, 2, 3], [-1, -4], 2, [[1, -2], [3, 0]]):
                yield one("DataFormatDimMap", np.array(axes, dtype), T=type, **formats)
            for x in ([7, 8, 9, 10], [[1, 2], [3, 4], [5, 6], [7, 8]], [[1, 2], [3, 4]], [5, 6]):
                yield one("DataFormatVecPermute", np.array(x, dtype), T=type, **formats)


def _serialized() -> Iterator[Case]:
    for type in sorted(ALL):
        for shape in ((2, 3), (), (0, 2)):
            x = np.asarray(sample(type, shape), object if type is DataType.STRING else None)
            yield one("SerializeTensor", x, T=type, out=TensorType.STRING)


def _fingerprints() -> Iterator[Case]:
    method = np.array(b"farmhash64", object)
    for type in (_F32, _I32, DataType.UINT8, DataType.STRING, DataType.BOOL):
        x = sample(type, (4, 3))
        # Of strings without elements TensorFlow hashes what lies in memory.
        empty = [] if type is DataType.STRING else [x[:, :0]]
        for part in (x, x[:, 0], x.reshape(2, 2, 3), x[:0], *empty):
            yield one("Fingerprint", part, method, T=type, out=TensorType.UINT8)
