"""Fixed-point multipliers, as kernels take them."""

from __future__ import annotations

from delegraph.arithmetic import quantize_multiplier


def bounded_multiplier(real: float) -> tuple[int, int]:
    """Return multiplier and shift; what is shifted out of 32 bits is 0, as in the core.

    >>> bounded_multiplier(0.375), bounded_multiplier(1e20)
    ((1610612736, -1), (0, 0))
    """
    multiplier, shift = quantize_multiplier(real)
    return (0, 0) if shift > 31 else (multiplier, shift)
