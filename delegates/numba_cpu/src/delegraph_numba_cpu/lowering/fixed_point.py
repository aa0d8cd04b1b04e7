"""Fixed-point multipliers in the form that kernels read."""

from __future__ import annotations

from delegraph.arithmetic import quantize_multiplier


def bounded_multiplier(real: float) -> tuple[int, int]:
    """Return multiplier and shift of *real*; (0, 0) for a shift above 31, as in the core.

    >>> bounded_multiplier(0.375), bounded_multiplier(1e20)
    ((1610612736, -1), (0, 0))
    """
    multiplier, shift = quantize_multiplier(real)
    return (0, 0) if shift > 31 else (multiplier, shift)
