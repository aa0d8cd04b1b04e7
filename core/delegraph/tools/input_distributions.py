"""Random inputs with the distributions of the official tools and of ``delegraph run``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.tools.model_call import Details, input_name
from delegraph.tools.model_inputs import random_values

Distribution = Literal["run", "benchmark", "inference_diff"]
"""Name of the tool whose distribution random inputs have."""

SENTENCE = b"the answer to life, the universe and everything"
"""Value of every string in random inputs."""

Range = tuple[int, int]
"""The lowest and the highest value; integers may take both."""

_BENCHMARK_RANGES = {"u4": (0, 99), "i4": (0, 99), "i8": (0, 99), "u1": (0, 254), "i1": (-127, 127)}


def distributed_values(
    details: Details,
    distribution: Distribution,
    rng: np.random.Generator,
    between: Range | None = None,
) -> NDArray[Any]:
    """Return random values for the input *details*; unknown dimensions are 1.

    Source:
        ``BenchmarkTfLiteModel``, tflite/tools/benchmark/benchmark_tflite_model.cc;
        ``InferenceProfilerStage``, tflite/tools/evaluation/stages/inference_profiler_stage.cc.

    Args:
        details: details of the input.
        distribution: name of the tool whose distribution is used; the single values are not the
            tool's.
        rng: generator of the values.
        between: range of the values instead of the tool's, only for ``"benchmark"``.

    Raises:
        ArgumentError: the input's type or the distribution cannot have the range.
    """
    if between is not None:
        _check_range(details, distribution, between)
    return _VALUES[distribution](details, rng, between)


def _check_range(details: Details, distribution: Distribution, between: Range) -> None:
    if distribution != "benchmark":
        raise ArgumentError(
            f"random values of {distribution!r} have a range already; --distribution benchmark "
            "takes one"
        )
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    if dtype.kind in "SOUb":
        raise ArgumentError(f"{input_name(details)} takes no range")
    low, high = between
    if low > high:
        raise ArgumentError(f"{input_name(details)}: no values lie between {low} and {high}")
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= low <= high <= np.iinfo(dtype).max:
        raise ArgumentError(f"{input_name(details)}: {dtype.name} cannot go from {low} to {high}")


def _as_run(details: Details, rng: np.random.Generator, between: Any) -> NDArray[Any]:
    return random_values(details, rng)


def _as_benchmark(
    details: Details, rng: np.random.Generator, between: tuple[int, int] | None
) -> NDArray[Any]:
    """Return uniform random values for an input: floats in [-0.5, 0.5), integers in small ranges.

    *between*, if given, is another range: lowest and highest value.
    """
    shape, dtype = _shape_and_dtype(details)
    if dtype.kind in "SOU":
        return np.full(shape, SENTENCE, object)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        low, high = between or _BENCHMARK_RANGES.get(dtype.str[1:], (0, 99))
        return rng.integers(low, high, shape, np.int64, endpoint=True).astype(dtype)
    bottom, top = map(float, between or (-0.5, 0.5))
    values: Any = rng.uniform(bottom, top, shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(bottom, top, shape)
    return np.asarray(values).astype(dtype)


def _as_inference_diff(details: Details, rng: np.random.Generator, between: Any) -> NDArray[Any]:
    """Return values of a normal distribution, cut to [0, 1) and spread over a range.

    The range of integers is that of their type, the range of floats [-1, 1). Texts are all equal.
    """
    shape, dtype = _shape_and_dtype(details)
    if dtype.kind in "SOU":
        return np.full(shape, SENTENCE, object)
    values = _truncated_normal(rng, shape)
    if dtype.kind == "b":
        return np.asarray(values != 0)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        spread = values * (float(limits.max) - float(limits.min)) + float(limits.min)
        top = np.nextafter(float(limits.max), 0) if dtype.itemsize == 8 else float(limits.max)
        return np.clip(np.trunc(spread), float(limits.min), top).astype(dtype)
    return np.asarray(2 * values - 1).astype(dtype)


def _truncated_normal(rng: np.random.Generator, shape: Sequence[int]) -> NDArray[np.float64]:
    """Return an array of *shape* from a normal distribution (mean 0.5, deviation 1/3) in [0, 1).

    Values outside are drawn again.
    """
    drawn = rng.normal(0.5, 1 / 3, shape)
    values = drawn.reshape(-1)
    outside = np.flatnonzero((values < 0) | (values >= 1))
    while outside.size:
        again = values[outside] = rng.normal(0.5, 1 / 3, shape).reshape(-1)[outside]
        outside = outside[(again < 0) | (again >= 1)]
    return drawn


def _shape_and_dtype(details: Details) -> tuple[list[int], np.dtype[Any]]:
    return details["shape"].tolist(), np.dtype(details["dtype"])


_VALUES: Mapping[Distribution, Callable[..., NDArray[Any]]] = {
    "run": _as_run,
    "benchmark": _as_benchmark,
    "inference_diff": _as_inference_diff,
}
