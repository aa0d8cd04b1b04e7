"""Guesses the origin of other projects' custom operators from their names, with advice."""

from __future__ import annotations

from typing import NamedTuple


class Provider(NamedTuple):
    """A project or vendor that probably made a custom operator.

    Attributes:
        name: name of the project or vendor.
        advice: text that tells the user how to run the model.
    """

    name: str
    advice: str

    def __str__(self) -> str:
        return f"probably {self.name}: {self.advice}"


_OWN_KERNEL = "give it a kernel by register_custom_op()"
_BEFORE_COMPILING = "runs on that chip only; here, use the model from before it was compiled"

_MEDIAPIPE = Provider("MediaPipe", _OWN_KERNEL)
_TF_TEXT = Provider("TensorFlow Text", "convert with SELECT_TF_OPS, and pip install delegraph-flex")

_NAMES = {
    "Convolution2DTransposeBias": _MEDIAPIPE,
    "DISPATCH_OP": Provider("LiteRT, compiled for an NPU", _BEFORE_COMPILING),
    "KmeansEmbeddingLookup": _MEDIAPIPE,
    "Landmarks2TransformMatrix": _MEDIAPIPE,
    "LiteRtMaxUnpooling2D": Provider("LiteRT", _OWN_KERNEL),
    "MaxPoolArgmax": _MEDIAPIPE,
    "MaxPoolingWithArgmax2D": _MEDIAPIPE,
    "MaxUnpooling": _MEDIAPIPE,
    "MaxUnpooling2D": _MEDIAPIPE,
    "NGramHash": _MEDIAPIPE,
    "NPU_OP": Provider("LiteRT, compiled for an NPU", _BEFORE_COMPILING),
    "NeutronGraph": Provider("NXP's Neutron compiler", _BEFORE_COMPILING),
    "RaggedTensorToTensor": _TF_TEXT,
    "Resampler": _MEDIAPIPE,
    "TransformLandmarks": _MEDIAPIPE,
    "TransformTensorBilinear": _MEDIAPIPE,
    "ethos-u": Provider("Arm's Vela compiler for Ethos-U", _BEFORE_COMPILING),
}

_PREFIXES = {
    "MTKEXT_": Provider("MediaTek's NeuroPilot converter", _OWN_KERNEL),
    "TFSentencepiece": _TF_TEXT,
    "tftext:": _TF_TEXT,
}


def likely_provider(custom_name: str) -> Provider | None:
    """Return the project or vendor that probably made a custom operator; None if unknown.

    >>> likely_provider("tftext:WhitespaceTokenizer").name
    'TensorFlow Text'
    >>> likely_provider("MyOp") is None
    True
    """
    found = (provider for prefix, provider in _PREFIXES.items() if custom_name.startswith(prefix))
    return _NAMES.get(custom_name) or next(found, None)
