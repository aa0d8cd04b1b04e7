"""Makes ``photo.png``, the picture of the guide: a handwritten digit as chalk on a blackboard.

    python docs/demo/make_photo.py

The digit is one that the demo's models were not trained on (``models/digits_test.npz``), enlarged.
Needs Pillow.
"""

from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
DIGIT = 3
SIZE = 160


def photo() -> Image.Image:
    """Return the picture: ``[160, 160, 3], uint8``."""
    with np.load(HERE / "models" / "digits_test.npz") as test:
        ink = test["images"][DIGIT]  # [8, 8], 0 to 16
    grey = Image.fromarray((ink / 16 * 255).astype(np.uint8)).resize(
        (SIZE, SIZE), Image.Resampling.BICUBIC
    )
    return Image.merge("RGB", (grey, grey, grey))


if __name__ == "__main__":
    photo().save(HERE / "photo.png", optimize=True)
