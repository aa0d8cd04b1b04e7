"""Metrics of bytes, which are sums over counted pairs, against those of sums over elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from delegraph.tools.differing.array_metrics import array_metrics
from delegraph.tools.differing.byte_metrics import byte_metrics
from delegraph.tools.differing.figures import ByteSums


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("size", "share"), [(1, 1.0), (999, 0.01), (70_001, 0.5)])
def test_bytes_have_the_metrics_of_the_same_wider_integers(
    dtype: Any, size: int, share: float
) -> None:
    random = np.random.default_rng(size)
    limits = np.iinfo(dtype)
    a, b = random.integers(limits.min, limits.max, (2, 1, size), dtype, endpoint=True)
    b = np.where(random.random(b.shape) < share, b, a)
    b[0, -1] = limits.max - (a[0, -1] == limits.max)  # they differ at least here
    found = byte_metrics(a, b, "step")
    wider = array_metrics(a.astype(np.int32), b.astype(np.int32), counts_units=True)
    assert replace(found, sums=None) == wider


def test_the_furthest_bytes_are_255_apart_and_the_first_of_them_is_named() -> None:
    a = np.zeros((3, 70_000), np.int8)
    b = a.copy()
    a[1:, 69_999], b[1:, 69_999] = -128, 127
    found = byte_metrics(a, b, "")
    assert (found.metrics.max, found.metrics.index) == (255.0, (1, 69_999))
    assert (found.metrics.found, found.metrics.expected) == (-128.0, 127.0)
    assert (found.unequal, found.histogram, found.max_units) == (2, {7: 2}, None)


def test_sums_are_those_of_the_elements() -> None:
    found = byte_metrics(np.uint8([200, 1]), np.uint8([100, 3]), "step")
    assert found.sums == ByteSums(2, 201.0, 103.0, (40_001.0, 10_009.0, 10_004.0, 20_003.0))
