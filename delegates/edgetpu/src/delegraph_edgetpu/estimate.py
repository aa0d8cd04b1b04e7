"""Estimates a device's time for one inference; nothing is measured.

``seconds = cycles / 480 MHz + bytes over the link / 500 MB/s``

- *Cycles*: the array multiplies 64 inputs by 64 outputs per cycle, so a convolution takes
  ``pixels * filter taps * ceil(inputs / 64) * ceil(outputs / 64)``; any other operator computes 64
  results per cycle. Waiting times are ignored.
- *Bytes over the link*: inputs, outputs, and the parameters that do not fit in the cache.

Computing and transfers do not overlap in the estimate. The time of the host (its driver, and
operators that stay on the CPU) is left out. The numbers are from :mod:`delegraph_edgetpu.chip`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from delegraph.json_records import JsonRecord
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.chip import CLOCK, LINK
from delegraph_edgetpu.operator_cost import cycles

FORMULA = "cycles / 480 MHz + (input + output + streamed parameter bytes) / 500 MB/s"


@dataclass(frozen=True)
class Estimate(JsonRecord):
    """Estimated time of one inference, in seconds.

    Attributes:
        compute: seconds of the multiplying array.
        transfer: seconds for inputs and outputs.
        streaming: seconds for parameters outside the cache.
    """

    json_properties: ClassVar = {"seconds": "seconds", "formula": "formula"}

    formula: ClassVar = FORMULA
    compute: float = field(metadata={"json_key": "compute_seconds"})
    transfer: float = field(metadata={"json_key": "transfer_seconds"})
    streaming: float = field(metadata={"json_key": "streaming_seconds"})

    @property
    def seconds(self) -> float:
        """Sum of compute, transfer and streaming time, in seconds."""
        return self.compute + self.transfer + self.streaming


def estimate(calls: Iterable[Call], transferred: int, streamed: int) -> Estimate:
    """Return the estimated time of one inference of the mapped operators, in seconds.

    The parts are computing, transfer of inputs and outputs, and sending of parameters.

    *transferred* are the bytes of inputs and outputs, *streamed* those of parameters that are sent
    at each inference.
    """
    total = sum(cycles(call) for call in calls)
    return Estimate(total / CLOCK, transferred / LINK, streamed / LINK)
