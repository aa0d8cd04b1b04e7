"""Base classes of interpreters, with members that import other modules only when called."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from delegraph.runtime.arguments import tensor_at
from delegraph.runtime.details import node_details, signature_details, tensor_details

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; never run on 3.10

    from delegraph.delegation.incident import Incident
    from delegraph.delegation.placement import Placement
    from delegraph.runtime.delegates.requested_delegates import AnyDelegate
    from delegraph.runtime.execution.invoke_async import Background, Run
    from delegraph.runtime.official.interpreter_wrapper import InterpreterWrapper
    from delegraph.runtime.session import Session
    from delegraph.runtime.tensor_access import MemoryViews


class ClosedByWith(ABC):
    """Base class of interpreters that can be used as ``with Interpreter(...) as interpreter``."""

    @abstractmethod
    def close(self) -> None:
        """Release the interpreter's memory and delegates."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class InvokesAsync:
    """Base class of interpreters that can invoke in a background thread."""

    if TYPE_CHECKING:
        _views: MemoryViews

        @property
        def session(self) -> Session: ...  # noqa: D102 - Interpreter documents it

    def invoke_async(self) -> Future[None]:
        """Run the model on the present inputs like ``invoke``, in a background thread.

        Until the Future is done, inputs may not be set nor outputs read: such calls raise
        ``StateError``. ``close`` waits for the Future. Several interpreters may run at the same
        time.

        Returns:
            A Future whose ``result()`` is None, or raises the errors of ``invoke``. Its
            ``cancel()`` asks the run to stop and returns False, because the run is not over yet.
            The run ends with ``CallCancelledError``, or normally if the request came too late.

        Raises:
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        self._background.require_idle("invoke_async", even_here=True)
        return self._background.start(*self._background_invoke(), keep=self)

    def _background_invoke(self) -> tuple[Run, Callable[[], None]]:
        """Return a function that invokes under the interpreter's lock, and its stop function."""
        self._views.require_none()
        run, invoke = self.session.calls.run, self.session.subgraphs[0].invoke
        return lambda begin: run("invoke_async", begin, invoke), self.session.cancellation.request

    @cached_property
    def _background(self) -> Background:
        from delegraph.runtime.execution.invoke_async import Background  # lazy: few programs do

        return Background()


class TakesDelegates:
    """Base class of ``Interpreter`` that applies, removes and describes delegates."""

    if TYPE_CHECKING:
        _views: MemoryViews

        @property
        def session(self) -> Session: ...  # noqa: D102 - Interpreter documents it

    def modify_graph_with_delegate(self, delegate: AnyDelegate) -> None:
        """Apply a delegate to every subgraph, after the delegates applied before.

        The default delegate, if there is one, remains last. Subgraphs whose name starts with
        ``VALIDATION:`` are not changed. The method can be called at any time: allocated tensors
        stay allocated, and inputs and variables keep their data.

        Raises:
            PluginError: a delegate that is requested by name is missing or broken.
            DelegateError: the delegate failed; every subgraph is as it was before the call.
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        from delegraph.runtime.delegates.defaults import apply_before_the_rest
        from delegraph.runtime.delegates.requested_delegates import as_delegate

        self._views.require_none()
        chosen = as_delegate(delegate, self.session.options.failures.isolation)
        session = self.session
        session.calls.run("modify_graph_with_delegate", apply_before_the_rest, session, chosen)

    def remove_delegate(self, name: str) -> None:
        """Remove the delegates called *name*, apply the others again, and keep tensor data.

        Raises:
            ArgumentError: no delegate with that name is applied; the message lists the applied
                ones.
            DelegateError: another delegate failed; that delegate and those after it are removed.
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        self._views.require_none()
        self.session.calls.run("remove_delegate", self.session.remove, name)

    def remove_all_delegates(self) -> None:
        """Remove all delegates; Delegraph's kernels then run all nodes. Tensor data is kept.

        Raises:
            StateError: a view from ``tensor()`` is alive, or another call runs.
        """
        self._views.require_none()
        self.session.calls.run("remove_all_delegates", self.session.remove_all_delegates)

    @property
    def placement(self) -> Placement:
        """Delegate and partition of each node, with the reasons of delegates that rejected it."""
        return self.session.placement()

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates that ``on_failure`` did not raise as errors."""
        return self.session.incidents.all()


class NotebookView:
    """Base class of ``Interpreter`` with its text and HTML forms."""

    if TYPE_CHECKING:

        @property
        def session(self) -> Session: ...  # noqa: D102 - Interpreter documents it
        @property
        def placement(self) -> Placement: ...  # noqa: D102 - and these
        def get_input_details(self) -> list[dict[str, Any]]: ...  # noqa: D102 - and these
        def get_output_details(self) -> list[dict[str, Any]]: ...  # noqa: D102

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.session if self._is_open() else 'that is closed'}>"

    def _is_open(self) -> bool:
        """Whether the constructor is done, and ``close`` was not called."""
        states = (getattr(self, name, None) for name in ("_session", "_kept_start"))
        return any(state is not None for state in states)

    def _repr_html_(self) -> str:
        """Return HTML with inputs, outputs and the placement, which notebooks display."""
        from delegraph.delegation.html_tables import html_table  # lazy import: only notebooks ask

        if not self._is_open():
            return html_table(repr(self), (), ())
        tensors = [("input", details) for details in self.get_input_details()]
        tensors += [("output", details) for details in self.get_output_details()]
        rows = [(kind, *_tensor(details)) for kind, details in tensors]
        columns = ("", "name", "type", "shape", "scale", "zero point")
        return html_table(repr(self), columns, rows) + self.placement._repr_html_()


def _tensor(details: dict[str, Any]) -> tuple[object, ...]:
    scale, zero_point = details["quantization"]
    quantized = (float(scale), int(zero_point)) if scale else (None, None)
    shape = details["shape_signature"].tolist()
    return (details["name"], details["dtype"].__name__, shape, *quantized)


def warn_of_kept_tensors() -> None:
    """Warn the constructor's caller of the memory that ``preserve_all_tensors`` costs."""
    warnings.warn(
        "Warning: Enabling `experimental_preserve_all_tensors` with the BUILTIN or AUTO op resolver"
        " is for debugging: every intermediate tensor gets memory of its own, and each node that a "
        "delegate takes becomes a partition. BUILTIN_WITHOUT_DEFAULT_DELEGATES gives no warning.",
        stacklevel=3,
    )


class OfficialMembers:
    """Base class of ``Interpreter`` with the official class's undocumented members.

    Benchmarks, converters and the official tests call these names with an underscore; Delegraph
    itself does not use them.

    Source:
        Interpreter, tflite/python/interpreter.py.
    """

    _views: MemoryViews
    _model_content: Any  # set only if the model was given as bytes
    _experimental_compress_quantization_zero_points: bool

    if TYPE_CHECKING:

        @property
        def session(self) -> Session:
            """The session with the model and its running subgraphs."""

    def _keep(self, model_content: Any, compresses_zero_points: bool) -> None:
        """Store two constructor arguments as attributes, since some programs read them.

        An empty *model_content* is not stored. The attribute ``_custom_op_registerers`` becomes an
        empty list, unless ``InterpreterWithCustomOps`` has set it before.
        """
        self.__dict__.setdefault("_custom_op_registerers", [])
        if model_content:
            self._model_content = model_content
        self._experimental_compress_quantization_zero_points = compresses_zero_points

    @cached_property
    def _interpreter(self) -> InterpreterWrapper:
        """The object whose methods the official class calls: the ``InterpreterWrapper``."""
        from delegraph.runtime.official.interpreter_wrapper import (
            InterpreterWrapper,  # lazy import: nothing of Delegraph's own goes through it
        )

        return InterpreterWrapper(self.session, self._views)

    @property
    def _signature_defs(self) -> dict[str, dict[str, list[str]]]:
        """Input and output names of each signature."""
        return {
            key: {side: list(names) for side, names in sides.items()}
            for key, sides in self._get_full_signature_list().items()
        }

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument of this name; it has no effect on results."""
        return self._experimental_compress_quantization_zero_points

    def _safe_to_run(self) -> bool:
        """Whether no view from ``tensor()`` is alive."""
        return not self._views

    def _ensure_safe(self) -> None:
        """Raise ``StateError`` while a view from ``tensor()`` is alive."""
        self._views.require_none()

    def _native_handle(self) -> int:
        """A number that identifies the interpreter, in place of a C++ object's address."""
        return self._interpreter.interpreter()

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        """Return the details of a tensor of any subgraph."""
        subgraph = self.session.subgraph(int(subgraph_index))
        return tensor_details(tensor_at(subgraph.tensors, int(tensor_index)))

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return names and tensor indices of each signature."""
        return signature_details(self.session.model.signatures)

    def _get_op_details(self, op_index: int) -> dict[str, Any]:
        """Return index, op_name, inputs, outputs and dtypes of a node; delegate nodes included."""
        return node_details(self.session.subgraphs[0], op_index)

    def _get_ops_details(self) -> list[dict[str, Any]]:
        """Return the details of every node."""
        return [self._get_op_details(i) for i in range(len(self.session.subgraphs[0].plan.nodes))]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise an error: an interpreter cannot be copied or pickled.

        Raises:
            ArgumentTypeError: always; a copy would share memory with this object.
        """
        from delegraph.runtime.official.interpreter_wrapper import not_copied

        raise not_copied(type(self).__name__)
