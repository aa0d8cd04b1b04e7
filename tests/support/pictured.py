"""Small classifiers of pictures, and pictures for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from delegraph.schema.options import ReducerOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph.tools import PictureFile

COLOURS = ("red", "green", "blue")


def colour_model(path: Path, size: tuple[int, int] = (4, 6), type: str = "FLOAT32") -> str:
    """Write a model that scores red, green and blue by a picture's channel means."""
    scale = {} if type == "FLOAT32" else {"scale": 1.0}
    axes = constant(np.int32([1, 2]))
    picture = tensor((1, *size, 3), type, name="picture", **scale)
    scores = tensor((1, 3), type, name="scores", **scale)
    options = ReducerOptions(keep_dims=False)
    path.write_bytes(one_op_model("MEAN", [picture, axes], [scores], options, version=2))
    return str(path)


def write_pictures(folder: Path, words: Sequence[str], size: tuple[int, int] = (9, 7)) -> None:
    """Write a picture for each colour in *words* as ``00.png``, ``01.png``, and so on."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for number, word in enumerate(words):
        pixels = rng.integers(0, 100, (*size, 3), np.uint8)
        pixels[..., COLOURS.index(word)] += 100
        Image.fromarray(pixels).save(folder / f"{number:02}.png")


def coloured(folder: Path, words: Sequence[str]) -> list[PictureFile]:
    """Return the pictures of :func:`write_pictures` as samples."""
    write_pictures(folder, words)
    return [PictureFile(str(folder / f"{i:02}.png"), word) for i, word in enumerate(words)]
