"""Result of compiling one model, or one segment of a model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delegraph.errors import ArgumentError
from delegraph_edgetpu.estimate import Estimate
from delegraph_edgetpu.executable import Executable
from delegraph_edgetpu.log import log_text
from delegraph_edgetpu.mapping import OperatorMapping


@dataclass(frozen=True)
class Work:
    """Numbers of multiply-adds in one inference.

    Attributes:
        mapped: multiply-adds on the Edge TPU.
        unmapped: multiply-adds on the CPU.
    """

    mapped: int
    unmapped: int


@dataclass(frozen=True)
class Memory:
    """Places of the parameters during an inference: on the chip or streamed.

    Attributes:
        parameter_bytes: bytes of all parameters.
        cached_bytes: bytes of the parameters that remain in the chip's cache.
        remaining_bytes: bytes of the cache that remain for other models in the same compilation.
    """

    parameter_bytes: int
    cached_bytes: int
    remaining_bytes: int

    @property
    def streamed_bytes(self) -> int:
        """Number of parameter bytes that the host sends to the device at each inference."""
        return self.parameter_bytes - self.cached_bytes


@dataclass(frozen=True)
class Compilation:
    """A compiled model or segment, with its mapping to the device, its memory and its work.

    Attributes:
        source: path of the compiled file, or ``model`` if it was given as bytes.
        source_bytes: size of the source in bytes.
        name: file name of the compiled model, such as ``mobilenet_edgetpu.tflite``.
        model: bytes of the compiled file.
        operators: mapping of each operator, to the Edge TPU or the CPU.
        executable: executable that the custom operator runs.
        memory: use of the parameter cache.
        work: numbers of multiply-adds.
        estimate: estimated time on a device.
        seconds: duration of the compilation, in seconds.
        segment: number of the segment, from 0.
        segments: number of segments; 1 for a whole model.
    """

    source: str
    source_bytes: int
    name: str
    model: bytes
    operators: tuple[OperatorMapping, ...]
    executable: Executable
    memory: Memory
    work: Work
    estimate: Estimate
    seconds: float
    segment: int = 0
    segments: int = 1

    @property
    def mapped(self) -> tuple[OperatorMapping, ...]:
        """Operators that run on the Edge TPU."""
        return tuple(operator for operator in self.operators if operator.is_mapped)

    @property
    def unmapped(self) -> tuple[OperatorMapping, ...]:
        """Operators that run on the CPU."""
        return tuple(operator for operator in self.operators if not operator.is_mapped)

    @property
    def log_name(self) -> str:
        """Name of the log file, without a folder."""
        return f"{Path(self.name).stem}.log"

    def write(self, folder: str | os.PathLike[str] = ".") -> Path:
        """Write the compiled file and its log into *folder*; return the path of the compiled file.

        Raises:
            ArgumentError: a file cannot be written.
        """
        target = Path(folder) / self.name
        log = log_text(self.source, self.name, self.operators)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.model)
            target.with_name(self.log_name).write_text(log, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            raise ArgumentError(f"{os.fspath(target)!r} cannot be written: {reason}") from error
        return target

    def to_json(self) -> dict[str, Any]:
        """Return all fields except the bytes of the model, as JSON data."""
        memory = self.memory
        return {
            "source": self.source,
            "source_bytes": self.source_bytes,
            "name": self.name,
            "bytes": len(self.model),
            "segment": self.segment,
            "segments": self.segments,
            "runtime_version": self.executable.runtime_version,
            "caching_token": f"{self.executable.caching_token:016x}",
            "mapped": len(self.mapped),
            "unmapped": len(self.unmapped),
            "parameter_bytes": memory.parameter_bytes,
            "cached_bytes": memory.cached_bytes,
            "streamed_bytes": memory.streamed_bytes,
            "cache_remaining_bytes": memory.remaining_bytes,
            "multiply_adds_mapped": self.work.mapped,
            "multiply_adds_unmapped": self.work.unmapped,
            "estimate": self.estimate.to_json(),
            "seconds": self.seconds,
            "operators": [operator.to_json() for operator in self.operators],
        }
