"""Pipeline: runs the segments of a model at the same time, each on a different input.

A model that was compiled in segments (``delegraph edgetpu compile -n 3``) has one interpreter per
segment, preferably each on its own device. While the second segment computes on the first segment's
result for a picture, the first segment computes the next picture.

Source:
    PipelinedModelRunner, pycoral/pipeline/pipelined_model_runner.py of google-coral/pycoral.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.json_records import JsonRecord
from delegraph_edgetpu.pipeline_simulation import PipelineSimulation
from delegraph_edgetpu.segment_chain import Arrays, SegmentChain

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; 3.10 never runs it


@dataclass(frozen=True, slots=True)
class PipelineStatistics(JsonRecord):
    """Throughput of a pipeline so far.

    Attributes:
        results: number of inputs that went through all segments.
        seconds: seconds from the first ``push`` to the last result.
        busy_seconds: seconds that each segment has computed; the busiest segment limits the
            throughput.
    """

    json_properties: ClassVar = {"results_per_second": "results_per_second"}

    results: int
    seconds: float
    busy_seconds: tuple[float, ...]

    @property
    def results_per_second(self) -> float:
        """Number of results per second; 0.0 before the first result."""
        return self.results / self.seconds if self.results else 0.0


_BETWEEN = 2
"""Largest number of results in the queue between two segments."""


class PipelinedModelRunner:
    """Runs a chain of models, each in its own thread; results have the order of the inputs.

    An input of a segment is the output of the same name of an earlier segment; inputs of the first
    segment are inputs of the pipeline. Results are the outputs of the last segment, and outputs
    that no segment reads. Input arrays are copied, so callers may reuse them.

    ::

        with PipelinedModelRunner([first, second, third]) as runner:
            for picture in pictures:
                runner.push({"input": picture})
            answers = [runner.pop() for _ in pictures]

    After a failure of a segment, ``pop`` first returns the results of earlier inputs and then
    raises an error; ``push`` raises at once.

    Args:
        interpreters: interpreters of the segments, in order; no other code may use them meanwhile.
        input_queue_size: largest number of inputs that wait for the first segment; if there are
            more, ``push`` waits. 0 means no limit.
        output_queue_size: largest number of results that wait for ``pop``; if there are more, the
            last segment waits. 0 means no limit, so that ``push`` never waits for ``pop``.

    Raises:
        ArgumentError: there is no interpreter, an interpreter occurs twice, or two segments do not
            match.
    """

    def __init__(
        self,
        interpreters: Sequence[Interpreter],
        input_queue_size: int = 2,
        output_queue_size: int = 0,
    ) -> None:
        self._chain = SegmentChain(interpreters)
        count = len(self._chain.segments)
        sizes = [input_queue_size, *[_BETWEEN] * (count - 1), output_queue_size]
        self._line = PipelineSimulation([each.run for each in self._chain.segments], sizes)
        self._threads = [
            threading.Thread(target=self._line.work, args=(i,), name=f"segment-{i}", daemon=True)
            for i in range(count)
        ]
        # Threads refer only to the line, so the runner can be freed.
        self._stop = weakref.finalize(self, self._line.stop)
        for thread in self._threads:
            thread.start()

    def interpreters(self) -> list[Interpreter]:
        """Interpreters of the segments, in order."""
        return [segment.interpreter for segment in self._chain.segments]

    def statistics(self) -> PipelineStatistics:
        """Return the throughput of the pipeline so far."""
        line = self._line
        seconds = line.finished_at - line.started_at if line.finished else 0.0
        return PipelineStatistics(line.finished, seconds, tuple(line.busy_seconds))

    def set_input_queue_size(self, size: int) -> None:
        """Limit the inputs that wait for the first segment to *size*; 0 means no limit."""
        self._line.resize(0, size)

    def set_output_queue_size(self, size: int) -> None:
        """Limit the results that wait for ``pop`` to *size*; 0 means no limit."""
        self._line.resize(len(self._threads), size)

    def push(self, input_tensors: Mapping[str, Any] | Sequence[Any]) -> bool:
        """Add inputs to the pipeline, after waiting while the input queue is full.

        Args:
            input_tensors: arrays by name, or in the order of the first segment's inputs. An empty
                mapping or sequence ends the inputs: ``pop`` returns None after the last result.

        Returns:
            Whether the inputs were accepted; they are not after the end of the inputs.

        Raises:
            ArgumentError: names, dtypes or shapes differ from the first segment's inputs.
            PipelineError: a segment failed.
            StateError: the pipeline is closed.
        """
        if not len(input_tensors):
            return self._line.end()
        is_named = isinstance(input_tensors, Mapping)
        return self._line.put((is_named, self._chain.checked(input_tensors)))

    def pop(self, timeout: float | None = None) -> Arrays | list[NDArray[Any]] | None:
        """Wait for the next result, and return it.

        Args:
            timeout: seconds to wait; None means no limit.

        Returns:
            Arrays by name, or in order if the inputs were given in order; None after the last
            result.

        Raises:
            PipelineError: a segment failed.
            StateError: the pipeline is closed.
            TimeoutError: no result arrived in time.
        """
        item = self._line.take(timeout)
        if item is None:
            return None
        is_named, values = item
        result: Arrays = {name: values[name] for name in self._chain.results}
        return result if is_named else list(result.values())

    def close(self) -> None:
        """Stop the pipeline: finish running segments, drop waiting inputs, end all threads."""
        self._stop()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
