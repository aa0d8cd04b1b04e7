"""Files of kept starts: they are read as they were written, and wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph import Tensor
from delegraph.graph.model import Quantization
from delegraph.runtime.kept_start import Request, Stored, found
from delegraph.schema.enums import TensorType


def test_a_stored_tensor_is_read_as_it_was() -> None:
    scales, zeros = np.array([0.5, 2], np.float32), np.array([1, -3], np.int32)
    tensor = Tensor(
        7,
        TensorType.INT8,
        (1, 2),
        name="é\n",
        shape_signature=(-1, 2),
        has_rank=True,
        quantization=Quantization(scales, zeros, 1),
    )
    stored = Stored("one.module", "version", "ab", 3, (Stored.fields(tensor),), (7,), (7,))
    (made,) = Stored.of(ascii(tuple(stored)).encode()).made()
    assert made.quantization is not None
    assert made.quantization.scales.tolist() == [0.5, 2]
    assert made.quantization.zero_points.tolist() == [1, -3]
    for name in ("index", "name", "type", "shape", "shape_signature", "has_rank"):
        assert getattr(made, name) == getattr(tensor, name)


@pytest.mark.parametrize("module", ["json", "no.such_module"])
def test_a_start_of_a_module_that_runs_no_programs_is_not_used(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path))
    request = Request(np.zeros(1, np.uint8), None, "key")
    request.cache.keep("key", SOUND.replace("a.b", module).encode())
    assert found(request) is None


SOUND = "('a.b', 'v', 'ab', 1, ((0, 'x', 0, (2,), (2,), True, None),), (0,), (0,))"


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("(0,), (0,)", "(0,), (1,)"),
        ("(0,), (0,)", "(), (0,)"),
        ("'ab'", "5"),
        ("'a.b'", "'a;b'"),
        ("1, ((", "None, (("),
        ("1, ((", "10 ** 12, (("),
        ("1, ((", "1000000000000, (("),
        ("'x'", "b'x'"),
        ("'x', 0", "'x', 5"),
        ("'x', 0", "'x', 99"),
        ("(2,), (2,)", "(-2,), (2,)"),
        ("(2,), (2,)", "(), ()"),
        ("(2,), (2,)", "(2.0,), (2,)"),
        ("(2,), (2,)", "(2,), (2, 3)"),
        ("None)", "(b'abc', b'', 0))"),
        ("(0,))", "(0,)"),
        (SOUND, "__import__('os')"),
        (SOUND, "é"),
    ],
)
def test_a_forged_start_is_refused(part: str, other: str) -> None:
    Stored.of(SOUND.encode())
    content = SOUND.replace(part, other, 1).encode()
    assert content != SOUND.encode()
    with pytest.raises((ValueError, TypeError, SyntaxError)):
        Stored.of(content)
