"""Small files that describe a lot take little memory and time, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from delegraph import Interpreter, Limits
from delegraph.errors import MalformedModelError
from delegraph.graph.loader import parse_model
from support.bombs import BOMBS, check_bomb, options, overlapping_zero_points, shared_zero_points


@pytest.mark.repetition(2)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak of memory")
@pytest.mark.parametrize("default", ["", None], ids=["core", "default"])
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_small_file_takes_little(
    bomb: Callable[[], bytes], default: str | None, tmp_path: Path
) -> None:
    """By the core's kernels, and with the delegates that apply by default where this runs."""
    check_bomb(bomb(), tmp_path / "bomb.tflite", default)


def test_tensors_that_share_a_list_share_its_copy() -> None:
    tensors = parse_model(shared_zero_points()).subgraphs[0].tensors
    zero_points = {id(t.quantization.zero_points) for t in tensors if t.quantization is not None}
    assert len(zero_points) == 1


def test_without_a_limit_it_is_64_times_the_file() -> None:
    content = options()
    with pytest.raises(
        MalformedModelError, match=f"64 times the file's {len(content)} bytes; Inter"
    ):
        parse_model(content)
    assert parse_model(content, None, 1 << 40).subgraphs[0].operators


def test_a_chosen_memory_limit_holds_while_the_file_is_read() -> None:
    content = overlapping_zero_points()
    with pytest.raises(MalformedModelError, match="limit of 2000000 bytes"):
        Interpreter(model_content=content, limits=Limits(memory=2_000_000))
