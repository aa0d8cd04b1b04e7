"""What the demo's model of digits answers to pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"


def answers_one_by_one(pictures: NDArray[Any]) -> NDArray[Any]:
    """Return an interpreter's answers to *pictures*, computed one picture at a time."""
    with Interpreter(DIGITS) as interpreter:
        runner = interpreter.get_signature_runner()
        return np.concatenate([runner(image=one[np.newaxis])["digit"] for one in pictures])
