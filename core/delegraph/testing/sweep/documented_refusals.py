"""Models that Delegraph rejects but LiteRT computes, as ``docs/differences.md`` explains."""

from __future__ import annotations

import re

REFUSALS: dict[str, str] = {
    "activation-bounds-beyond-int32": r"_POOL_2D\).*activation bound .* is out of range",
    "anchors-of-another-shape": r"expected \[1, N, >= 4\], \[1, N, C\] and \[N, 4\]",
    "atan2-of-two-sizes": r"\(ATAN2\).*has shape .*, expected \[",
    "biases-of-another-rank": r"\(\w*RNN\).*has shape \[\d+, .*\], expected \[\d+\]",
    "bytes-without-a-scale": r"scale 0\.0, expected a positive one|has no scale|no quantization"
    r"|output scale 0\.0",
    "computed-weights-of-integer-lstms": r"weights .* of an integer layer are not constant",
    "constants-that-nodes-write": r"is constant and cannot be written",
    "dequantize-with-a-scale-a-block": r"scales of \d+ elements each, expected blocks",
    "dimensions-beyond-int32": r"cannot have shape \[.*\], expected dimensions from 0 to",
    "fake-quant-of-other-bits": r"\(FAKE_QUANT\).*num_bits is",
    "hadamard-rotation-to-another-shape": r"\(aeq.hadamard_rotation\).*output has shape",
    "index-that-a-slice-drops": r"\(STRIDED_SLICE\).*index -?\d+ is outside a dimension of",
    "int16-logistic-of-extreme-scales": r"input scale is .*, expected one from",
    "lengths-beyond-the-dimension": r"\(STRIDED_SLICE\).*the slice is .*, expected",
    "matrix-set-diag-of-another-shape": r"diagonal \[.*\] does not fit",
    "more-than-32-dimensions": r"32 are most",
    "new-axes-beyond-the-indices": r"new_axis_mask has bit \d+, expected none beyond",
    "numeric-verify-of-another-shape": r"\(NumericVerify\).*has shape .*, expected",
    "parameters-of-several-elements": r"axis has shape .*, expected one element",
    "pools-without-a-window": r"window size is (0|-)",
    "prelu-int16-alpha": r"\(PRELU\).*has type INT16, expected one of INT8",
    "scales-of-another-count": r"\d+ scales, expected one",
    "scales-that-are-no-positive-numbers": r"scale (-|nan|inf)|give the multiplier (-|nan|inf)",
    "scales-too-far-apart": r"ratio of|give the multiplier .*, expected less",
    "scatter-of-other-dimensions": r"update_window_dims, expected|index vectors have"
    r"|slices .*, expected parts|updates .* do not have a place",
    "sequences-longer-than-their-axis": r"lengths .*, expected at most",
    "shift-left-with-too-few-amounts": r"\(STABLEHLO_SHIFT_LEFT\).* amounts for ",
    "sparse-constants-for-dense-ones": r"is a sparse constant, expected a dense one",
    "strides-of-another-count": r"begin, end and strides as INT32 vectors of one length",
    "variables-of-another-shape": r"variable is \[.*\], expected \[",
    "weights-of-other-types": r"\((PRELU|SVDF|\w*CONV_2D|\w+_SEQUENCE_\w+)\).*has type INT[24],"
    r"|\(\w+_SEQUENCE_\w+\).*have types (INT8 and INT[24]|INT[24] and INT8), expected the same"
    r"|\(\w*RNN\).*have types (FLOAT32 and FLOAT16|FLOAT16 and FLOAT32), expected the same"
    r"|\((LSH_PROJECTION|EMBEDDING_LOOKUP\w*|\w*LSTM|PRELU|\w*RNN|SVDF)\).*has type FLOAT16",
    "zero-points-beyond-their-type": r"zero point -?\d+",
}
"""Mapping from the id of an entry of ``docs/differences.md`` to a pattern of the error."""

_PATTERNS = {name: re.compile(pattern) for name, pattern in REFUSALS.items()}


def documented_refusal(error: BaseException | None) -> str | None:
    """Return the id of the entry of ``docs/differences.md`` that explains *error*; else None.

    *error* is a rejection by Delegraph.
    """
    text = str(error or "")
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(text)), None)
