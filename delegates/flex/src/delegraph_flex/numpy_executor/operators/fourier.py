"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.registry import operator

_RANKS = {"": 1, "2D": 2, "3D": 3}


@operator("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def transform(node: FlexNode) -> Step:
    """Return a function that computes the (inverse) Fourier transform of the last dimensions."""
    rank = _RANKS[node.op.removeprefix("I").removeprefix("FFT")]
    whole: Callable[..., Any] = fft.ifftn if node.op.startswith("I") else fft.fftn
    last: Callable[..., Any] = fft.ifft if node.op.startswith("I") else fft.fft
    axes = tuple(range(-rank, 0))

    def run(x: NDArray[Any]) -> Any:
        if x.ndim < rank:
            raise ValueError(f"input has shape {list(x.shape)}, expected {rank} dimensions or more")
        if not x.size:
            return x.copy()
        return last(x) if rank == 1 else whole(x, axes=axes)

    return run


@operator("RFFT", "RFFT2D", "RFFT3D")
def real_transform(node: FlexNode) -> Step:
    """Function that transforms real input, cut to the given lengths, into half of the spectrum."""
    rank = _RANKS[node.op.removeprefix("RFFT")]
    dtype = node.type("Tcomplex").dtype

    def run(x: NDArray[Any], lengths: NDArray[Any]) -> Any:
        n = _lengths(x, lengths, rank)
        cut = _cut(x, n)
        if not cut.size:
            return np.zeros((*cut.shape[:-1], n[-1] // 2 + 1 if n[-1] else 0), dtype)
        if rank == 1:
            return fft.rfft(cut).astype(dtype, copy=False)
        return fft.rfftn(cut, axes=tuple(range(-rank, 0))).astype(dtype, copy=False)

    return run


@operator("IRFFT", "IRFFT2D", "IRFFT3D")
def inverse_real_transform(node: FlexNode) -> Step:
    """Return a function that computes the real signal of the given lengths from half a spectrum."""
    rank = _RANKS[node.op.removeprefix("IRFFT")]
    dtype = node.type("Treal").dtype
    outer = tuple(range(-rank, -1))

    def run(x: NDArray[Any], lengths: NDArray[Any]) -> Any:
        n = _lengths(x, lengths, rank)
        cut = _cut(x, [*n[:-1], n[-1] // 2 + 1 if n[-1] else 0])
        shape = (*cut.shape[:-1], n[-1])
        require(shape, dtype)
        if not cut.size:
            return np.zeros(shape, dtype)
        if rank > 1:
            cut = fft.ifftn(cut, axes=outer)
        return fft.irfft(cut, n[-1]).astype(dtype, copy=False)

    return run


def _lengths(x: NDArray[Any], lengths: NDArray[Any], rank: int) -> list[int]:
    if x.ndim < rank or lengths.shape != (rank,):
        raise ValueError(
            f"input {list(x.shape)} and fft_length of shape {list(lengths.shape)}, expected"
            f" {rank} dimensions or more, and [{rank}]"
        )
    n: list[int] = lengths.tolist()
    if min(n) < 0:
        raise ValueError(f"fft_length is {n}, expected no negative length")
    return n


def _cut(x: NDArray[Any], lengths: list[int]) -> NDArray[Any]:
    """Return the first *lengths* elements of *x*'s last dimensions.

    A dimension must be long enough, or empty.
    """
    shape = x.shape[-len(lengths) :]
    if any(0 < have < need for have, need in zip(shape, lengths, strict=True)):
        raise ValueError(f"input has {list(shape)} values, expected at least {lengths}")
    index: tuple[Any, ...] = (..., *(slice(need) for need in lengths))
    result: NDArray[Any] = x[index]
    return result
