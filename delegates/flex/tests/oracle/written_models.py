"""Small programs whose conversion shows what models with Flex operators consist of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

F32, F64, I32, I64, BOOL = tf.float32, tf.float64, tf.int32, tf.int64, tf.bool

Specs = dict[str, Any]
"""Of a program's inputs by name: a shape for float32, or a ``TensorSpec``."""


@dataclass(frozen=True)
class WrittenModel:
    """A program, with its way of conversion and its inputs.

    Attributes:
        name: of the model.
        program: takes the inputs by name, returns outputs by name; or the class of a module
            whose ``__call__`` does.
        specs: of the inputs.
        steps: the inputs of one call after the other.
        select: everything becomes a Flex operator; otherwise only what has no builtin one.
        tolerance: relative to the largest magnitude of an output.
        is_kept: goes into the repository, for tests without TensorFlow.
    """

    name: str
    program: Callable[..., Any]
    specs: Specs
    steps: list[dict[str, NDArray[Any]]]
    select: bool = False
    tolerance: float = 1e-5
    is_kept: bool = True

    def convert(self) -> bytes:
        """Return the model."""
        is_module = isinstance(self.program, type)
        module = self.program() if is_module else tf.Module()
        body = module.__call__ if is_module else self.program
        specs = {
            name: tf.TensorSpec(spec.shape, spec.dtype, name)
            if isinstance(spec, tf.TensorSpec)
            else tf.TensorSpec(spec, F32, name)
            for name, spec in self.specs.items()
        }
        function = tf.function(lambda **inputs: body(**inputs)).get_concrete_function(**specs)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function], module)
        builtins = [] if self.select else [tf.lite.OpsSet.TFLITE_BUILTINS]
        converter.target_spec.supported_ops = [*builtins, tf.lite.OpsSet.SELECT_TF_OPS]
        converter._experimental_allow_all_select_tf_ops = True
        model: bytes = converter.convert()
        return model


MODELS: list[WrittenModel] = []


def model(
    specs: Specs, *steps: dict[str, Any], **how: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that adds a model under the function's name; without *steps*, inputs are random."""

    def add(program: Callable[..., Any]) -> Callable[..., Any]:
        name = program.__name__.strip("_").lower()
        arrays = [{key: np.asarray(x) for key, x in step.items()} for step in steps]
        MODELS.append(
            WrittenModel(name, program, specs, arrays or list(_noise(name, specs)), **how)
        )
        return program

    return add


def _noise(name: str, specs: Specs) -> Iterable[dict[str, NDArray[Any]]]:
    rng = np.random.default_rng(sum(name.encode()))
    yield {key: rng.normal(0, 1, spec).astype(np.float32) for key, spec in specs.items()}


def text(*values: Any) -> NDArray[Any]:
    """Return an array of strings."""
    return np.array(values, object)


@model({"x": [2, 5]}, select=True)
def sines(x: Any) -> Any:
    return {"y": tf.sin(x) + x + tf.sin(2 * x)}


@model(
    {"x": tf.TensorSpec([None, 3], F32)},
    {"x": np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)},
    {"x": np.linspace(-1, 3, 12, dtype=np.float32).reshape(4, 3)},
)
def alternating(x: Any) -> Any:
    for _ in range(6):
        x = tf.raw_ops.Erf(x=x) * 1.5 + tf.reverse(x, [1])
    return {"y": x, "large": tf.unique(tf.cast(tf.reshape(x * 2, [-1]), I32))[0]}


class WordTable(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "bc"], [1.5, -2.0]), -1.0
        )

    def __call__(self, words: Any) -> Any:
        return {"values": self.table.lookup(words), "size": self.table.size()}


model({"words": tf.TensorSpec([3], tf.string)}, {"words": text(b"bc", b"x", b"a")})(WordTable)


class Memory(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = tf.lookup.experimental.MutableHashTable(tf.string, F32, -1.0)

    def __call__(self, key: Any, value: Any) -> Any:
        before = self.table.lookup(key)
        self.table.insert(key, before + value)
        return {"before": before, "after": self.table.lookup(key), "size": self.table.size()}


model(
    {"key": tf.TensorSpec([1], tf.string), "value": [1]},
    *({"key": text(k), "value": np.float32([v])} for k, v in ((b"a", 5), (b"b", 2), (b"a", 1))),
)(Memory)


class Counter(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.total = tf.Variable([0.5, 0.0])

    def __call__(self, x: Any) -> Any:
        self.total.assign_add(tf.math.erf(x))
        return {"total": tf.identity(self.total)}


model({"x": [2]}, *({"x": np.float32([0.3, x])} for x in (1, 2, -1)))(Counter)


class Assigned(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.value = tf.Variable([0.0, 0.0])

    def __call__(self, x: Any) -> Any:
        self.value.assign(x)
        self.value.assign_sub(tf.math.erf(x))
        return {"y": tf.identity(self.value) * 2}


model({"x": [2]}, select=True)(Assigned)


@model({"x": [4, 3]})
def mapped(x: Any) -> Any:
    return {"y": tf.map_fn(lambda row: tf.math.erf(row) + tf.reduce_sum(row), x)}


@model({"x": [5]})
def collected(x: Any) -> Any:
    array = tf.TensorArray(F32, size=0, dynamic_size=True, element_shape=[5])
    i = tf.constant(0)
    _, array = tf.while_loop(
        lambda i, a: i < 4,
        lambda i, a: (i + 1, a.write(i, tf.math.erf(x * tf.cast(i, F32)))),
        (i, array),
    )
    return {"stack": array.stack(), "sum": tf.reduce_sum(array.concat())}


@model(
    {"x": [3], "flag": tf.TensorSpec([], BOOL)},
    *({"x": np.float32([0.5, -1, 2]), "flag": flag} for flag in (True, False)),
)
def branching(x: Any, flag: Any) -> Any:
    return {"y": tf.cond(flag, lambda: tf.math.erf(x), lambda: tf.math.cumprod(x, reverse=True))}


@model(
    {"s": tf.TensorSpec([3], tf.string)},
    {"s": text(b" Hello World", b"a-b-a ", "gr\u00fc\u00df dich".encode())},
    {"s": text(b"", b"x", b" ")},
)
def words(s: Any) -> Any:
    parts = tf.strings.split(s)
    return {
        "upper": tf.strings.upper(s),
        "lower": tf.strings.lower(s, encoding="utf-8"),
        "strip": tf.strings.strip(s),
        "length": tf.strings.length(s),
        "characters": tf.strings.length(s, unit="UTF8_CHAR"),
        "replaced": tf.strings.regex_replace(s, "[aeiou]+", "<\\0>"),
        "joined": tf.strings.join([s, s], separator="|"),
        "one": tf.strings.reduce_join(s, separator="+"),
        "parts": parts.values,
        "splits": parts.row_splits,
        "substring": tf.strings.substr(s, [0, 0, 0], tf.minimum(tf.strings.length(s), 2)),
        "base64": tf.io.encode_base64(s),
        "bucket": tf.strings.to_hash_bucket_fast(s, 1000),
    }


@model(
    {"s": tf.TensorSpec([3], tf.string), "x": [3]},
    {"s": text(b"1.5", b"-2e3", b"7"), "x": np.float32([1, -2.25, 1e6])},
)
def numbers(s: Any, x: Any) -> Any:
    return {
        "value": tf.strings.to_number(s),
        "text": tf.strings.as_string(x, precision=3, width=12, fill="0"),
        "short": tf.strings.as_string(x, shortest=True),
    }


@model({"x": tf.TensorSpec([8], I32)}, {"x": np.int32([3, 1, 3, 0, 1, 7, 7, 3])})
def sizes(x: Any) -> Any:
    values, index, counts = tf.unique_with_counts(x)
    return {
        "values": values,
        "index": index,
        "counts": counts,
        "where": tf.where(x > 2),
        "bins": tf.math.bincount(x, minlength=9),
        "missing": tf.sets.difference([tf.range(9)], [x]).values,
    }


@model({"x": [2, 4, 4], "b": [2, 4, 1]}, tolerance=1e-4)
def solved(x: Any, b: Any) -> Any:
    positive = tf.matmul(x, x, transpose_b=True) + tf.eye(4)
    lower = tf.linalg.cholesky(positive)
    q, r = tf.linalg.qr(x)
    return {
        "cholesky": lower,
        "inverse": tf.linalg.inv(positive),
        "solve": tf.linalg.solve(positive, b, adjoint=True),
        "triangular": tf.linalg.triangular_solve(lower, b),
        "determinant": tf.linalg.det(positive),
        "eigenvalues": tf.linalg.eigvalsh(positive),
        "singular": tf.linalg.svd(x, compute_uv=False),
        "product": tf.matmul(q, r),
        "band": tf.linalg.band_part(x, 1, 0),
        "diagonal": tf.linalg.diag(b[:, :, 0], k=1),
    }


@model({"x": [4, 8], "y": [4, 8]})
def spectra(x: Any, y: Any) -> Any:
    z = tf.complex(x, y)
    transformed = tf.signal.fft2d(z)
    return {
        "real": tf.math.real(transformed),
        "angle": tf.math.angle(tf.signal.ifft(z)),
        "magnitude": tf.abs(tf.signal.rfft3d(x[tf.newaxis], [1, 4, 6])),
        "back": tf.signal.irfft2d(tf.signal.rfft2d(x)),
    }


@model({"x": [1, 9, 9, 2]})
def pictures(x: Any) -> Any:
    boxes = tf.constant([[0.0, 0.1, 0.8, 0.9], [0.5, 0.5, 1.2, 1.0]])
    chosen, count = tf.raw_ops.NonMaxSuppressionV4(
        boxes=boxes,
        scores=x[0, 0, :2, 0],
        max_output_size=2,
        iou_threshold=0.5,
        score_threshold=-9.0,
        pad_to_max_output_size=True,
    )
    return {
        "cropped": tf.image.crop_and_resize(x, boxes, [0, 0], [3, 4], extrapolation_value=-1.0),
        "patches": tf.image.extract_patches(
            x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], padding="SAME"
        ),
        "chosen": chosen,
        "count": count,
    }


@model({"x": [1, 5, 7, 2]})
def resized(x: Any) -> Any:
    return {"area": tf.compat.v1.image.resize_area(x, [4, 5])}


@model({"x": [1, 6, 6, 2]}, select=True)
def convolved(x: Any) -> Any:
    rng = np.random.default_rng(5)
    kernel, depthwise = (
        tf.constant(rng.normal(0, 1, shape).astype(np.float32))
        for shape in ((3, 3, 2, 4), (3, 3, 4, 1))
    )
    y = tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), [0.1, 0.2, 0.3, 0.4]))
    y = tf.nn.depthwise_conv2d(y, depthwise, [1, 2, 2, 1], "VALID")
    y = tf.nn.max_pool2d(y, 2, 1, "SAME") + tf.nn.avg_pool2d(y, 2, 1, "SAME")
    return {"y": tf.nn.softmax(tf.reshape(y, [1, -1])), "argmax": tf.argmax(y, axis=3)}


@model({"x": [3, 4]})
def running(x: Any) -> Any:
    return {
        "product": tf.math.cumprod(x, axis=1, exclusive=True),
        "sum": tf.cumsum(x, axis=0, reverse=True),
        "log": tf.math.cumulative_logsumexp(x, axis=-1),
        "gamma": tf.math.lgamma(tf.abs(x) + 0.5),
        "digamma": tf.math.digamma(tf.abs(x) + 0.5),
        "rolled": tf.roll(x, [1, -2], [0, 1]),
        "cross": tf.linalg.cross(x[:, :3], x[:, 1:]),
        "bessel": tf.math.bessel_i1e(x),
        "igamma": tf.math.igamma(tf.abs(x) + 0.5, tf.abs(x) + 0.25),
    }


@model({"seed": tf.TensorSpec([2], I32)}, {"seed": np.int32([3, 9])})
def chances(seed: Any) -> Any:
    return {
        "uniform": tf.random.stateless_uniform([5], seed),
        "normal": tf.random.stateless_normal([4], seed),
        "integers": tf.random.stateless_uniform([6], seed, -5, 9, dtype=I32),
        "truncated": tf.random.stateless_truncated_normal([3], seed),
    }


@model({"x": [2, 3, 4], "y": [2, 4, 5]})
def sums(x: Any, y: Any) -> Any:
    return {
        "einsum": tf.einsum("bij,bjk->kbi", x, y),
        "outer": tf.einsum("bij,bkl->", x, y),
        "batch": tf.matmul(tf.cast(x, F64), tf.cast(y, F64)),
        "segments": tf.math.unsorted_segment_prod(x[0], [1, 0, 1], 3),
        "scattered": tf.tensor_scatter_nd_max(x[0], [[0], [2]], x[1, :2]),
    }


@model({"x": [2, 6]})
def ranked(x: Any) -> Any:
    return {
        "top": tf.math.in_top_k([1, 3], x, 2),
        "histogram": tf.histogram_fixed_width(x, [-1.0, 1.0], 4),
        "quantised": tf.quantization.fake_quant_with_min_max_args(x, -1, 1),
        "bands": tf.raw_ops.Bucketize(input=tf.cast(x, F64), boundaries=[-1.0, 0.0, 0.5]),
        "padded": tf.pad(x, [[1, 1], [2, 0]], "SYMMETRIC"),
        "clipped": tf.clip_by_norm(x, 1.5),
    }


@model({"n": tf.TensorSpec([], I64)}, {"n": np.int64(5)}, {"n": np.int64(0)})
def dataset(n: Any) -> Any:
    numbers = tf.data.Dataset.range(n).map(lambda i: i * i + n)
    return {"total": numbers.reduce(tf.constant(0, I64), lambda s, i: 2 * s + i)}


@model({"n": tf.TensorSpec([], I64)}, {"n": np.int64(7)}, {"n": np.int64(0)})
def dataset_batches(n: Any) -> Any:
    numbers = tf.data.Dataset.range(n).map(lambda i: i * i).filter(lambda i: i % 3 != 1 or i > 9)
    batches = numbers.repeat(2).batch(3).take(2)
    return {"total": batches.reduce(tf.constant(0, I64), lambda s, x: 2 * s + tf.reduce_sum(x))}


@model({"x": [6, 2], "y": [2]})
def dataset_rows(x: Any, y: Any) -> Any:
    rows = tf.data.Dataset.from_tensor_slices(x).map(lambda row: row * y)
    once = tf.data.Dataset.from_tensors(y)
    batches = rows.concatenate(once).batch(2, drop_remainder=True)
    return {"y": batches.reduce(tf.zeros([2]), lambda s, x: s / 2 + tf.reduce_sum(x, 0))}


@model(
    {"lines": tf.TensorSpec([None], tf.string)},
    {"lines": text(b'1,0.5,"a, b"', b",,", b" 7 ,1e3,x")},
)
def csv_lines(lines: Any) -> Any:
    whole, real, word = tf.io.decode_csv(lines, [3, -1.0, "none"])
    return {"whole": whole, "real": real, "word": word}


@model({"points": tf.TensorSpec([4], I32)}, {"points": np.int32([65, 0x5D0, 0x3042, 0x378])})
def scripts(points: Any) -> Any:
    return {"scripts": tf.strings.unicode_script(points)}


@model({"values": [3], "more": [2]})
def sparse_sums(values: Any, more: Any) -> Any:
    x = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], values, [3, 4])
    y = tf.SparseTensor([[0, 1], [1, 1]], more, [3, 4])
    both, joined = tf.sparse.add(x, y), tf.sparse.concat(1, [x, y])
    return {
        "sum": both.values,
        "places": both.indices,
        "joined": joined.values,
        "joined_places": joined.indices,
        "softmax": tf.sparse.softmax(x).values,
    }


@model({"limits": tf.TensorSpec([3], I32)}, {"limits": np.int32([2, 0, 3])})
def ragged(limits: Any) -> Any:
    rows = tf.ragged.range(limits)
    return {"values": rows.values, "dense": rows.to_tensor(default_value=-1, shape=[None, 4])}


def _example() -> bytes:
    features = {
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, 2.5])),
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[7])),
    }
    example: bytes = tf.train.Example(
        features=tf.train.Features(feature=features)
    ).SerializeToString(deterministic=True)
    return example


@model({"serialized": tf.TensorSpec([1], tf.string)}, {"serialized": text(_example())})
def parsed(serialized: Any) -> Any:
    kinds = {
        "x": tf.io.FixedLenFeature([2], F32),
        "n": tf.io.FixedLenFeature([], I64, default_value=0),
        "w": tf.io.VarLenFeature(tf.string),
    }
    found = tf.io.parse_example(serialized, kinds)
    return {"x": found["x"], "n": found["n"], "w": tf.sparse.to_dense(found["w"])}
