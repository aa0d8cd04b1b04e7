"""Batching: converts the rows of a batch to calls of a model, several rows per call if possible."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, DelegraphError, PredictionError
from delegraph.graph.model import Model
from delegraph.scale.rows import Columns, has_batch_axis, is_ragged, joined
from delegraph.tools.model_call import Details, ModelCall, declared_shape, model_call
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import tensor_names, with_names

if TYPE_CHECKING:
    from delegraph.tools.setup import AnyInterpreter

Batching = Literal["auto", "resize", "pad", "rows"]
"""Way in which rows become calls; see :class:`~delegraph.scale.predictor.Predictor`."""

SIZES_KEPT = 8
"""Number of batch sizes for each of which an allocated interpreter is kept."""


class BatchedModel:
    """A model that computes batches of rows; a batch is a mapping from column names to arrays.

    Args:
        setup: the model, and the runtime, delegates and threads that run it.
        signature: name of the signature to call. None means the only signature, or the whole model
            if it has none.
        batching: method by which rows become calls of the model.
        max_batch: largest number of rows in a call.

    Raises:
        ArgumentError: the signature does not exist, or the method does not suit the model.
        DelegraphError: the model cannot be loaded.
    """

    def __init__(
        self, setup: Setup, signature: str | None, batching: Batching, max_batch: int
    ) -> None:
        self._setup = setup
        self._spare: AnyInterpreter | None = setup.interpreter()
        self._signature = _called_signature(self._spare, signature)
        self._ready: OrderedDict[tuple[tuple[int, ...], ...], _Ready] = OrderedDict()
        self._past_incidents = 0
        call = model_call(self._spare, self._signature)
        session = getattr(self._spare, "session", None)  # official runtimes have none
        self._model: Model | None = None if session is None else session.model
        names = tensor_names(setup, self._signature, call, self._model)
        self.inputs = with_names(call.input_details(), names.inputs)
        self.outputs = with_names(call.output_details(), names.outputs)
        self.max_batch = max_batch
        self._batching = self._possible(batching)

    @property
    def batching(self) -> Batching:
        """Method of batching: ``"resize"``, ``"pad"`` or ``"rows"``, or ``"auto"`` at first."""
        return self._batching

    def _possible(self, batching: Batching) -> Batching:
        """Return the method of batching: *batching* itself, or for ``"auto"`` what shapes allow."""
        sizes = {(declared_shape(entry) or [0])[0] for entry in self.inputs}
        size = sizes.pop() if len(sizes) == 1 else 0
        if batching == "pad" and size < 1:
            raise ArgumentError("batching='pad' needs inputs with the same fixed first dimension")
        if batching == "auto" and size > 1:
            return "pad"
        return "rows" if batching == "auto" and size not in (-1, 1) else batching

    def close(self) -> None:
        """Close all interpreters."""
        for ready in self._ready.values():
            ready.interpreter.close()
        if self._spare is not None:
            self._spare.close()

    def model(self) -> Model:
        """Return the content of the model's file, which is loaded only once."""
        if self._model is None:
            self._model = self._setup.loaded_model()
        return self._model

    def incidents(self) -> int:
        """Return the number of delegate failures after which Delegraph went on."""
        present = sum(len(ready.interpreter.incidents) for ready in self._ready.values())
        return self._past_incidents + present

    def placement(self) -> dict[str, Any]:
        """Return the placement of nodes as JSON data, for calls with a single row."""
        if self._spare is None:
            return dict(next(iter(self._ready.values())).interpreter.placement.to_json())
        self._spare.allocate_tensors()
        return dict(self._spare.placement.to_json())

    def __call__(self, columns: Columns) -> Columns:
        """Return the outputs for the rows of *columns*, by output name.

        Raises:
            DelegraphError: the model failed; the bad row is not known yet.
        """
        given = [columns[entry["name"]] for entry in self.inputs]
        if any(map(is_ragged, given)):
            rows = zip(*given, strict=True)
            return joined([self._row([np.asarray(v)[np.newaxis] for v in row]) for row in rows])
        along = all(map(has_batch_axis, self.inputs, given))
        batching = self._batching if along else "rows"
        if batching == "auto":
            return self._tried(given)
        parts = [self._piece(piece, batching) for piece in self._pieces(given, batching)]
        return joined(parts)

    def _pieces(self, given: Sequence[NDArray[Any]], batching: Batching) -> list[list[Any]]:
        rows = len(given[0])
        size = {"rows": 1, "pad": declared_shape(self.inputs[0])[0]}.get(batching, self.max_batch)
        return [[values[i : i + size] for values in given] for i in range(0, rows, size)]

    def _piece(self, given: Sequence[NDArray[Any]], batching: Batching) -> Columns:
        """Return the outputs of the rows in *given*, which one call computes, by output name.

        *batching* is the method: ``"rows"`` for a single row, ``"pad"`` to the declared batch, or
        ``"resize"``.
        """
        if batching == "rows":
            return self._row(given)
        rows = len(given[0])
        if batching == "pad":
            missing = declared_shape(self.inputs[0])[0] - rows
            given = [np.concatenate([v, np.repeat(v[-1:], missing, 0)]) for v in given]
        outputs = self._called(given)
        for name, values in outputs.items():
            if not values.ndim or len(values) != len(given[0]):
                raise ArgumentError(
                    f"output {name!r} of {len(given[0])} rows has shape {list(values.shape)}: the "
                    "model takes no batches; batching='rows' computes them one by one"
                )
        return {name: values[:rows] for name, values in outputs.items()}

    def _row(self, given: Sequence[NDArray[Any]]) -> Columns:
        """Return the outputs of the one row in *given*, each with a batch axis of 1."""
        values = [
            row if has_batch_axis(entry, row) else row[0]
            for entry, row in zip(self.inputs, given, strict=True)
        ]
        along = all(map(has_batch_axis, self.inputs, given))
        outputs = self._called(values)
        return {
            name: output
            if along and output.ndim and len(output) == 1 and name not in self._lists
            else output[np.newaxis]
            for name, output in outputs.items()
        }

    @cached_property
    def _lists(self) -> frozenset[str]:
        """Names of outputs that are lists of unknown length, while inputs have a fixed batch."""
        if any((declared_shape(entry) or [-1])[0] < 0 for entry in self.inputs):
            return frozenset()
        return frozenset(e["name"] for e in self.outputs if declared_shape(e) == [-1])

    def _tried(self, given: Sequence[NDArray[Any]]) -> Columns:
        """Compute rows one by one and together; if the results agree, keep the faster method.

        A model may accept several rows but mix them, by a constant shape or a sum over all rows. If
        all rows have the same result, mixing cannot be detected.
        """
        one_by_one = joined([self._piece(piece, "rows") for piece in self._pieces(given, "rows")])
        if any(map(is_ragged, one_by_one.values())):
            self._batching = "rows"
            return one_by_one
        if all(_all_alike(values) for values in one_by_one.values()):
            return one_by_one
        try:
            with self._quietly():
                together = self._piece([v[: self.max_batch] for v in given], "resize")
        except (DelegraphError, MemoryError):
            self._batching = "rows"
            return one_by_one
        expected = {name: values[: self.max_batch] for name, values in one_by_one.items()}
        self._batching = "resize" if _same(together, expected) else "rows"
        return one_by_one

    def _called(self, values: Sequence[NDArray[Any]]) -> Columns:
        """Call the model on *values*, one array per input; return the outputs by name.

        The interpreter is already allocated for the shapes of *values*.
        """
        shapes = tuple(value.shape for value in values)
        ready = self._ready.pop(shapes, None) or self._made_ready(values)
        self._ready[shapes] = ready
        if len(self._ready) > SIZES_KEPT:
            _, oldest = self._ready.popitem(last=False)
            self._past_incidents += len(oldest.interpreter.incidents)
            oldest.interpreter.close()
        ready.interpreter.reset_all_variables()  # the answer of a row does not depend on the order
        with self._prediction_errors():
            ready.call.fill(values)
            ready.call.invoke()
            found = zip(self.outputs, ready.call.outputs(), strict=True)
            return {entry["name"]: output for entry, (_, output) in found}

    def _made_ready(self, values: Sequence[NDArray[Any]]) -> _Ready:
        interpreter, self._spare = self._spare or self._setup.interpreter(), None
        call = model_call(interpreter, self._signature)
        try:
            with self._prediction_errors():
                call.allocate(values)
        except DelegraphError:
            interpreter.close()
            raise
        return _Ready(interpreter, call)

    @contextmanager
    def _prediction_errors(self) -> Iterator[None]:
        """Raise errors of an official runtime, which are RuntimeErrors, as PredictionErrors."""
        try:
            yield
        except DelegraphError:
            raise
        except (RuntimeError, ValueError) as error:
            if self._setup.runtime == "delegraph":
                raise
            text = " ".join(str(error).split())
            raise PredictionError(f"the official runtime fails: {text}") from error

    def _quietly(self) -> AbstractContextManager[None]:
        """Return a context without the lines that an official runtime prints when it fails."""
        if self._setup.runtime == "delegraph":
            return nullcontext()
        from delegraph.native.litert.quiet import stderr_discarded

        return stderr_discarded()


@dataclass(frozen=True, slots=True)
class _Ready:
    """An interpreter that is allocated for certain input shapes, and its call."""

    interpreter: AnyInterpreter
    call: ModelCall


def _called_signature(interpreter: AnyInterpreter, wanted: str | None) -> str | None:
    """Return the signature to call: *wanted*, else the only one; None if the model has none."""
    known = sorted(interpreter.get_signature_list())
    if wanted is None and len(known) > 1:
        names = ", ".join(known)
        raise ArgumentError(
            f"the model has several signatures, {names}: signature={known[0]!r} calls the first"
        )
    return wanted or next(iter(known), None)


def empty_outputs(inputs: Sequence[Details], outputs: Sequence[Details], given: Columns) -> Columns:
    """Outputs without rows, by name; a row has the dtype and shape that a row of *given* yields."""
    along = all(has_batch_axis(entry, given[entry["name"]]) for entry in inputs)
    batches = {1, *(declared_shape(entry)[0] for entry in inputs if along)}
    rows = {entry["name"]: entry["shape"].tolist() for entry in outputs}
    for name, shape in rows.items():
        if along and shape and shape[0] in batches:
            rows[name] = shape[1:]
    return {entry["name"]: np.empty((0, *rows[entry["name"]]), entry["dtype"]) for entry in outputs}


def _all_alike(values: NDArray[Any]) -> bool:
    """Whether all rows of *values* are equal, so that mixed rows cannot be detected."""
    return bool(np.array_equal(values, np.repeat(values[:1], len(values), 0), equal_nan=False))


def _same(found: Columns, expected: Columns) -> bool:
    """Whether *found* equals *expected*: integers exactly, floats except for rounding."""
    return all(_equal(found[name], values) for name, values in expected.items())


def _equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    scale = float(np.max(np.abs(b), initial=0, where=np.isfinite(b)))
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-5 * scale, equal_nan=True))
