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
    """Multiply-adds of one inference.

    Attributes:
        mapped: on the Edge TPU.
        unmapped: on the CPU.
    """

    mapped: int
    unmapped: int


@dataclass(frozen=True)
class Memory:
    """Where parameters are during an inference.

    Attributes:
        parameter_bytes: all of them.
        cached_bytes: what stays on the chip.
        remaining_bytes: what is left of the cache for models that are compiled together with it.
    """

    parameter_bytes: int
    cached_bytes: int
    remaining_bytes: int

    @property
    def streamed_bytes(self) -> int:
        """Number of parameter bytes that the host sends at each inference."""
        return self.parameter_bytes - self.cached_bytes


@dataclass(frozen=True)
class Compilation:
    """A compiled model or segment, with its mapping, its memory and its work.

    Attributes:
        source: the file that was compiled, or ``model`` when it was given as bytes.
        source_bytes: its size.
        name: file name of the compiled model: ``mobilenet_edgetpu.tflite``.
        model: the compiled file.
        operators: what became of each operator in it.
        executable: what the custom operator executes.
        memory: use of the parameter cache.
        work: multiply-adds.
        estimate: seconds on a device.
        seconds: duration of the compilation.
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
        """Operators that stay on the CPU."""
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
        """Return all fields by name except the bytes of the model, for JSON."""
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
