"""How long a device may take for one inference: an estimate, not a measurement.

``seconds = cycles / 480 MHz + bytes over the link / 500 MB/s``

- *Cycles*: the array multiplies 64 inputs by 64 outputs a cycle, so a convolution takes
  ``pixels * filter taps * ceil(inputs / 64) * ceil(outputs / 64)``; any other operator makes 64
  results a cycle. Nothing is ever waited for.
- *Bytes over the link*: inputs, outputs, and the parameters that the cache has no room for.

Nothing overlaps in it, and the time of the host (its driver, and operators that stay on the CPU) is
left out. The figures behind it are in :mod:`delegraph_edgetpu.chip`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from delegraph_edgetpu.call import Call
from delegraph_edgetpu.chip import CLOCK, LINK
from delegraph_edgetpu.operator_cost import cycles

FORMULA = "cycles / 480 MHz + (input + output + streamed parameter bytes) / 500 MB/s"


@dataclass(frozen=True)
class Estimate:
    """Seconds of one inference.

    Attributes:
        compute: the array's.
        transfer: of inputs and outputs.
        streaming: of parameters that the cache does not hold.
    """

    compute: float
    transfer: float
    streaming: float

    @property
    def seconds(self) -> float:
        """The sum."""
        return self.compute + self.transfer + self.streaming

    def to_json(self) -> dict[str, float | str]:
        """Return the numbers by name, and how they are made."""
        return {
            "seconds": self.seconds,
            "compute_seconds": self.compute,
            "transfer_seconds": self.transfer,
            "streaming_seconds": self.streaming,
            "formula": FORMULA,
        }


def estimate(calls: Iterable[Call], transferred: int, streamed: int) -> Estimate:
    """Return the estimate for the mapped operators.

    Args:
        calls: the operators.
        transferred: bytes of inputs and outputs.
        streamed: bytes of parameters that are sent each time.
    """
    total = sum(cycles(call) for call in calls)
    return Estimate(total / CLOCK, transferred / LINK, streamed / LINK)
