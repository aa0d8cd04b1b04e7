"""Presets: the preprocessing of training frameworks, each with the reason for its steps."""

from __future__ import annotations

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.tools.evaluation.preprocessing import Preprocessing

IMAGENET_MEAN = (123.675, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)

PRESETS = {
    preset.name: preset
    for preset in (
        Preprocessing(
            "tflite",
            "what TFLite's own evaluation tool does: a square is cut out, then resized without "
            "smoothing",
            crop="square",
        ),
        Preprocessing(
            "slim",
            "TF-Slim trained the MobileNets and Inceptions with it: like tflite, but the rectangle "
            "that is cut out keeps the picture's proportions, and the input squeezes it",
            crop="rectangle",
        ),
        Preprocessing(
            "keras",
            "load_img and preprocess_input of Keras, mode 'tf': the whole picture is squeezed, and "
            "each pixel is the nearest one",
            resize="nearest",
        ),
        Preprocessing(
            "keras-caffe",
            "preprocess_input of Keras, mode 'caffe', for VGG and ResNet: blue comes first, and "
            "only the mean is subtracted",
            resize="nearest",
            mean=(103.939, 116.779, 123.68),
            std=(1.0,),
            channels="bgr",
            integers="quantized",
        ),
        Preprocessing(
            "torchvision",
            "the weights of torchvision: resized with smoothing, then cut out; mean and deviation "
            "are those of ImageNet, one for each colour",
            crop="after",
            resize="bilinear",
            mean=IMAGENET_MEAN,
            std=IMAGENET_STD,
            integers="quantized",
        ),
        Preprocessing(
            "timm",
            "most weights of timm: as torchvision, with a bicubic filter",
            crop="after",
            resize="bicubic",
            mean=IMAGENET_MEAN,
            std=IMAGENET_STD,
            integers="quantized",
        ),
    )
}
"""Mapping from a preset's name to the preset; ``dataclasses.replace`` makes variants."""


def preset(name: str) -> Preprocessing:
    """Return the preprocessing with the name *name*.

    Raises:
        ArgumentError: there is no such preset.
    """
    if name not in PRESETS:
        raise ArgumentError(
            f"no preset {name!r}{did_you_mean(name, PRESETS)}, expected one of: "
            f"{', '.join(PRESETS)}"
        )
    return PRESETS[name]
