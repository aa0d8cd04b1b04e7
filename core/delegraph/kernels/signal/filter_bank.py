"""SignalFilterBank: the energy of a spectrum in bands, each weighted by a triangle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_Sum = Callable[[NDArray[np.uint32]], NDArray[np.uint64]]


@kernel("SignalFilterBank")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalFilterBank: a spectrum ``[n], uint32`` to ``[num_channels], uint64``.

    A run is a range of frequencies with weights. Inputs 1 and 2 are the weights for the rising and
    falling sides of the triangles. Inputs 3, 4 and 5 are the first frequency, the first weight and
    the length of each run. All are int16. Run *i* is the rising side of channel *i* - 1 and the
    falling side of channel *i*; there is one more run than channels.

    Source:
        tflite-micro/signal/micro/kernels/filter_bank.cc, src/filter_bank.cc.
    """
    x, *tables, y = tensors_of(context, node, 6)
    require_type(x, {TensorType.UINT32})
    require_type(y, {TensorType.UINT64})
    for tensor in tables:
        require_type(tensor, {TensorType.INT16})
    for tensor in (x, *tables):
        require_rank(tensor, 1)
    channels = signal_option(node, "num_channels", 1)
    context.resize_tensor(y, (channels,))
    if not all(tensor.is_constant_or_persistent for tensor in tables):

        def run() -> None:
            y.data[...] = _band_sum(channels, x, tables)(x.data)

        return run
    band_sum = _band_sum(channels, x, tables)

    def run_with_constants() -> None:
        y.data[...] = band_sum(x.data)

    return run_with_constants


def _band_sum(channels: int, x: Tensor, tables: Sequence[Tensor]) -> _Sum:
    """Return the function that sums the spectrum *x* in each of *channels* channels.

    *tables* are the node's inputs 1 to 5: weights, and each channel's run of frequencies.

    Raises:
        OperatorError: a run goes beyond the spectrum or the weights, or there are too few runs.
    """
    weights, unweights, frequencies, first_weights, lengths = (table.data for table in tables)
    for table in tables[2:]:
        if table.data.size <= channels:
            raise OperatorError(f"{table!r} has {table.data.size} runs, expected {channels + 1}")
    length = np.maximum(lengths[: channels + 1].astype(np.int64), 0)
    ends = np.cumsum(length)
    offsets = np.arange(length.sum()) - np.repeat(ends - length, length)
    frequency = _indices(frequencies, length, offsets, x.shape[0], "the spectrum")
    weight_count = min(weights.size, unweights.size)
    weight = _indices(first_weights, length, offsets, weight_count, "the weights")
    rising, falling = (side[weight].astype(np.uint64) for side in (weights, unweights))

    def band_sum(spectrum: NDArray[np.uint32]) -> NDArray[np.uint64]:
        energy = spectrum[frequency].astype(np.uint64)
        return _run_sums(energy * rising, ends)[1:] + _run_sums(energy * falling, ends)[:-1]

    return band_sum


def _indices(
    starts: NDArray[Any], length: NDArray[Any], offsets: NDArray[Any], size: int, what: str
) -> NDArray[Any]:
    """Return the indices of all numbers of all runs, joined in one array.

    Args:
        starts: index of each run's first number.
        length: length of each run.
        offsets: position of each number in its run, for the joined runs.
        size: number of valid indices.
        what: name of the indexed array in an error.
    """
    indices: NDArray[Any] = np.repeat(starts[: len(length)].astype(np.int64), length) + offsets
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise OperatorError(
            f"runs take numbers {indices.min()} to {indices.max()} of {what}, there are {size}"
        )
    return indices


def _run_sums(products: NDArray[np.uint64], ends: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the sum of each run of *products*, modulo 2^64; *ends* are the ends of the runs."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products, dtype=np.uint64)])
    return np.asarray(np.diff(total[np.concatenate([[0], ends])]))
