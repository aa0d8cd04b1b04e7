"""Small files that describe a lot, with the delegates that apply by default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.bombs import BOMBS, check_bomb


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak of memory")
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_small_file_takes_little(bomb: Callable[[], bytes], tmp_path: Path) -> None:
    check_bomb(bomb(), tmp_path / "bomb.tflite", None)
