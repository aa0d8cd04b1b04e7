"""A compiled part of a model that has no caching token and no share of the cache yet.

Models that are compiled together share the device's parameter cache; they have the same caching
token.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import prod
from pathlib import Path

from delegraph.errors import MalformedModelError
from delegraph.graph import Model, self_contained
from delegraph.schema import CustomNode, Plan, pruned, tables, with_plans, write_model
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.compilation import Compilation, Memory, Work
from delegraph_edgetpu.custom_options import CUSTOM_OP, write_custom_options
from delegraph_edgetpu.estimate import estimate
from delegraph_edgetpu.executable import Executable
from delegraph_edgetpu.mapping import OperatorMapping
from delegraph_edgetpu.operator_cost import multiply_adds
from delegraph_edgetpu.partition import executable_of
from delegraph_edgetpu.segments import Boundary, Part, cut_out


@dataclass(frozen=True)
class CompiledSegment:
    """A compiled part that has no caching token and no share of the parameter cache yet.

    Attributes:
        name: file name of the model that contains the part.
        model: that model.
        record: records of that model.
        part: node indices of the part.
        edge: tensors that are inputs and outputs of the custom operator.
        partition: the mapped nodes as a model.
        mapped: the mapped operators.
        unmapped: operators that stay on the CPU.
        mappings: mapping of each operator, to the Edge TPU or the CPU.
        segment: number of the segment, from 0.
        segments: number of segments.
        seconds: duration of the compilation so far, in seconds.
    """

    name: str
    model: Model
    record: tables.Model
    part: Part
    edge: Boundary
    partition: bytes
    mapped: tuple[Call, ...]
    unmapped: tuple[Call, ...]
    mappings: tuple[OperatorMapping, ...]
    segment: int = 0
    segments: int = 1
    seconds: float = 0.0

    def finished(self, caching_token: int, free: int, runtime_version: int) -> Compilation:
        """Return the result of the compilation; the part's share of the cache is known now.

        *free* is the number of bytes of the cache that are free for the part; see also
        :func:`executable_of`.
        """
        start = time.perf_counter()
        executable = executable_of(
            self.partition, self.mapped, caching_token, free, runtime_version
        )
        cached = executable.cached_bytes
        memory = Memory(executable.parameter_bytes, cached, free - cached)
        work = Work(executable.multiply_adds, sum(map(multiply_adds, self.unmapped)))
        return Compilation(
            source=self.name,
            source_bytes=self.model.bytes,
            name=self._file_name(),
            model=self._content(executable),
            operators=self.mappings,
            executable=executable,
            memory=memory,
            work=work,
            estimate=estimate(self.mapped, self._transferred(), memory.streamed_bytes),
            seconds=self.seconds + time.perf_counter() - start,
            segment=self.segment,
            segments=self.segments,
        )

    def _transferred(self) -> int:
        """Return the bytes of the custom operator's inputs and outputs, one byte per element."""
        tensors = self.mapped[0].tensors
        sent = (tensors[index] for index in (*self.edge.inputs, *self.edge.outputs))
        return sum(prod(tensor.shape) for tensor in sent if not tensor.is_variable)

    def _file_name(self) -> str:
        stem = Path(self.name).stem
        if self.segments == 1:
            return f"{stem}_edgetpu.tflite"
        return f"{stem}_segment_{self.segment}_of_{self.segments}_edgetpu.tflite"

    def _content(self, executable: Executable) -> bytes:
        """Return the bytes of the compiled file; a whole model keeps its associated files."""
        record = self._with_custom_op(executable)
        if self.segments > 1:
            return write_model(record)
        try:
            return self_contained(self.model, record).tobytes()
        except MalformedModelError as error:
            raise MalformedModelError(f"{self.name}: {error}") from error

    def _with_custom_op(self, executable: Executable) -> tables.Model:
        """Return the part's model with a custom operator, containing *executable*.

        The custom operator replaces the mapped nodes.
        """
        options = write_custom_options(executable.pack())
        custom = CustomNode(CUSTOM_OP, options, self.edge.inputs, self.edge.outputs)
        plan: Plan = (*self.part.before, custom, *self.part.after)
        record = with_plans(self.record, [plan])
        if self.segments > 1:
            return cut_out(record, self.part.inputs, self.part.outputs)
        return pruned(record)
