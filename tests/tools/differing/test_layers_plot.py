from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools import diff_layers
from delegraph.tools.differing.layers_plot import draw_layers
from support.layer_models import fed, setup_of
from support.seeded_faults import SoundKernel, with_kernel


def test_pictures_say_what_has_no_height(chain: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    class Broken(SoundKernel):
        def result(self, step: Any, registration: Any, a: Any, b: Any) -> Any:
            return np.full_like(a, np.nan) if registration.name == "MUL" else a + b

    setup = setup_of(chain, "delegraph", with_kernel(Broken)())
    draw_layers(diff_layers(setup, inner="alone", runs=1, inputs=fed()), tmp_path / "l.svg")
    text = (tmp_path / "l.svg").read_text()
    assert "equal" in text
    assert "NaN, infinite" in text
    with pytest.raises(ArgumentError, match="No such file or directory"):
        draw_layers(diff_layers(setup, runs=1, inputs=fed()), tmp_path / "none" / "l.png")
