"""The official ``CompiledModel`` with delegates written in Python."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import FunctionType
from typing import Any

from delegraph.delegation.incident import Incident
from delegraph.delegation.placement import Placement
from delegraph.errors import ArgumentError, ArgumentTypeError, StateError
from delegraph.graph.external_buffers import official_source, self_contained
from delegraph.graph.model import Model
from delegraph.graph.model_files import mapped_file
from delegraph.locks import Lock
from delegraph.native.litert import guard
from delegraph.native.litert.applied_delegates import AppliedDelegates
from delegraph.native.litert.delegate import AnyModel, LiteRtDelegate, loaded
from delegraph.native.litert.environment import Side, compiling
from delegraph.native.litert.installed_runtimes import compiled_model_module
from delegraph.native.litert.observer import Observer
from delegraph.native.litert.switch_interval import switching
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.runtime.delegates.requested_delegates import ManyDelegates
from delegraph.runtime.execution.profile import Profile
from delegraph.runtime.options import (
    FailurePolicy,
    Limits,
    PlacementPolicy,
    groups_of,
    require_official,
)


def compiled_model(
    model: AnyModel,
    delegates: ManyDelegates | Sequence[Any] | None = None,
    hardware_accel: Any = None,
    environment: Any = None,
    options: Any = None,
    *,
    before: bool = True,
    custom_ops: Mapping[str, AnyCustomOp] | None = None,
    placement: PlacementPolicy | None = None,
    limits: Limits | None = None,
    failures: FailurePolicy | None = None,
    switch_interval: float | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Any:
    """Return an official ``ai_edge_litert`` ``CompiledModel`` to which delegates are applied.

    ::

        with compiled_model("mobilenet.tflite", delegates=["numba_cpu"]) as model:
            inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
            model.run_by_index(0, inputs, outputs)
            print(model.placement)

    The object is an instance of the official class with all its methods, and the members
    ``placement``, ``incidents``, ``profile()`` and ``cancel()`` of ``LiteRtInterpreter``. Calls
    raise a delegate's own exception. One call runs at a time, because tensors belong to the model;
    calls of other threads wait. Different models run at the same time. ``close()`` or the end of a
    ``with`` block releases the model and then the delegates; buffers may outlive it.

    Args:
        model: path of a ``.tflite`` file, its bytes, or a loaded model.
        delegates: names, objects, official delegates, or a mapping from names to options, in the
            order of application; None means the delegates of the user's configuration.
        hardware_accel: as in the official class; it has no effect on the delegates.
        environment: as in the official class; other models in the environment get no delegate.
        options: as in the official class.
        before: whether the delegates are applied before the runtime's own accelerators, such as
            XNNPACK.
        custom_ops: custom operators in Python for this model, by name, as in
            ``delegraph.Interpreter``. They are computed after all other delegates have been asked.
        placement: as in ``LiteRtInterpreter``.
        limits: as in ``LiteRtInterpreter``.
        failures: as in ``LiteRtInterpreter``.
        switch_interval: as in ``LiteRtInterpreter``.
        cache_dir: as in ``delegraph.Interpreter``.

    Raises:
        ArgumentError: (ValueError) arguments are wrong, or the file does not exist.
        MalformedModelError: (ValueError) the model is damaged.
        PluginError: a named delegate is missing or broken.
        PlacementError: the placement does not satisfy ``placement``.
        UnsupportedRuntimeError: (RuntimeError) there is no official ``CompiledModel``, or it has
            unknown structs.
        Exception: the exception of a delegate.
    """
    if switch_interval is not None and not switch_interval > 0:
        raise ArgumentError(f"switch_interval is {switch_interval!r}, expected seconds > 0")
    groups = groups_of(placement, limits, failures, {})
    require_official(groups)
    found = loaded(model, groups["limits"])
    guard.require_known_compiled_model()
    module = compiled_model_module()
    cpu = getattr(options, "cpu_options", None)
    mode = getattr(getattr(cpu, "kernel_mode", None), "name", "DELEGATE")
    applied = AppliedDelegates(
        found,
        None,
        delegates,
        groups["placement"],
        groups["limits"],
        groups["failures"],
        "reference" if mode == "REFERENCE" else "builtin",
        cache_dir,
        custom_ops=custom_ops,
        takes_defaults=mode == "DELEGATE",
    )
    for delegate in applied.own:
        delegate.needs_static_shapes = True
        delegate.num_threads = _num_threads(options, cpu)
    applied.observer = observer = Observer(found)
    if environment is None:
        environment = module.Environment.create()
    official = _class(module.CompiledModel)
    create, source = _source(official, model, found)

    def compile_it() -> Any:
        own = [functools.partial(_address, delegate) for delegate in applied.all]
        last = functools.partial(_address, observer)
        addresses: dict[Side, Sequence[Callable[[], int]]]
        addresses = {"before": own, "after": [last]} if before else {"after": [*own, last]}
        with compiling(environment, {"before": (), **addresses}):
            return create(source, hardware_accel, environment, options)

    made = applied.make(compile_it)
    made._applied, made._switch_interval = applied, switch_interval
    try:
        _check(made)
    except BaseException:
        made.close()
        raise
    return made


def placement_of(compiled_model: Any) -> Placement:
    """Return the delegate and partition of each node of a model from :func:`compiled_model`.

    Partitions of XNNPACK and of the runtime's other accelerators are included.

    Raises:
        ArgumentTypeError: the model was not made by :func:`compiled_model`.
        StateError: the model is closed.
    """
    if not isinstance(compiled_model, DelegatedModel):
        raise ArgumentTypeError(
            f"placement_of takes a result of delegraph.native.compiled_model(), not "
            f"{compiled_model!r}"
        )
    return compiled_model.placement


def _num_threads(options: Any, cpu: Any) -> int:
    """Return the number of threads in the official options; *cpu* is the CPU's part of the options.

    The official default is one thread; 0 in the options lets the runtime choose.
    """
    if options is None:
        return 1
    return getattr(cpu, "num_threads", 0) or -1


def _source(official: Any, model: AnyModel, found: Model) -> tuple[Callable[..., Any], str | bytes]:
    """Return a constructor of the class *official* for *model*, and its first argument.

    *found* is the model that Delegraph has loaded.
    """
    if isinstance(model, bytes):
        return official.from_buffer, model
    file = mapped_file(found.content)
    path = None if file is None else os.fsdecode(file.path)
    whole, content = official_source(found, path, None)
    if whole is not None:
        return official.from_file, whole
    return official.from_buffer, content or self_contained(found).tobytes()


def _address(delegate: Any) -> int:
    if isinstance(delegate, LiteRtDelegate):
        return delegate.address
    return int(delegate._get_native_delegate_pointer())


class DelegatedModel:
    """Members that distinguish a model with delegates from an official ``CompiledModel``."""

    _model: Any
    _applied: AppliedDelegates | None = None
    _switch_interval: float | None = None
    _is_running = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lock = Lock()

    @property
    def placement(self) -> Placement:
        """Delegate and partition of each node, with the reasons of delegates that rejected it.

        Raises:
            StateError: the model is closed.
        """
        with self._alone("placement"):
            applied = self._open()
            assert applied.observer is not None  # compiled_model has set it
            return applied.placement(applied.observer)

    def _open(self) -> AppliedDelegates:
        if self._applied is None:
            raise StateError("the compiled model is closed")
        return self._applied

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Failures of delegates after which the model continued, according to ``on_failure``."""
        return () if self._applied is None else self._applied.incidents

    def cancel(self) -> None:
        """Ask the running call to stop at the next node of a Python delegate; from any thread.

        The call raises ``CallCancelledError``. Without a running call, nothing happens.
        """
        if self._applied is not None:
            self._applied.cancellation.request()

    @contextmanager
    def profile(self, *, whole_partitions: bool = False) -> Iterator[Profile]:
        """Context that yields a profile, which records the runs of the Python delegates' nodes.

        With *whole_partitions*, a delegate node is recorded as a whole, even if the delegate
        records the nodes in it.
        """
        with self._open().profile(whole_partitions=whole_partitions) as profile:
            yield profile

    def close(self) -> None:
        """Release the model and then its delegates; later calls have no effect."""
        with self._alone("close"):
            super().close()  # type: ignore[misc]  # of the official class
            applied, self._applied = self._applied, None
            if applied is not None:
                applied.close()

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Context of the call *name*; other threads wait until it ends."""
        with self._lock:
            self._require_no_run(name)
            yield

    def _require_no_run(self, name: str) -> None:
        if self._is_running:  # in this thread, which holds the lock
            raise StateError(f"{name} was called by a kernel of the model that is running")


def _call(model: DelegatedModel, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call *method* while no other call of *model* runs; raise the exception of a delegate."""
    with model._lock:
        model._require_no_run(method.__name__)
        applied = model._applied
        if applied is None:
            return method(model, *arguments, **named)
        return applied.call(method, model, *arguments, **named)


def _run(model: DelegatedModel, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    seconds = model._switch_interval
    with model._lock, nullcontext() if seconds is None else switching(seconds):
        model._require_no_run(method.__name__)
        applied = model._applied
        if applied is None:
            return method(model, *arguments, **named)
        model._is_running = True
        try:
            return applied.call(method, model, *arguments, **named)
        finally:
            model._is_running = False


def _create(model: DelegatedModel, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Call *method* of *model*, which makes a signature's buffers, once kernels are prepared.

    The buffers' sizes depend on the shapes of outputs, which kernels decide.

    LiteRT prepares kernels at the first run or the first request for details of outputs.
    """
    with model._lock:
        signature = next(iter((*given, *named.values())), 0)
        with suppress(Exception):  # creating buffers or running raises it again
            _let_prepare(model, signature)
        return _call(model, method, *given, **named)


def _let_prepare(model: DelegatedModel, signature: Any) -> None:
    """Make LiteRT prepare the nodes of *signature*, by requesting details of its outputs."""
    if isinstance(signature, int) and 0 <= signature < model._model.GetNumSignatures():
        signature = model._model.GetSignatureByIndex(signature)["key"]
    model.get_output_tensor_details(signature)  # type: ignore[attr-defined]  # of the official


def _resize(model: DelegatedModel, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Resize an input of *model* by the official *method*, and check the new placement."""
    with model._lock:
        _call(model, method, *given, **named)
        _check(model)


def _check(model: DelegatedModel) -> None:
    """Check the placement of *model*, and the memory of its tensors."""
    applied = model._applied
    if applied is None:
        return
    observer = applied.observer
    assert isinstance(observer, Observer)  # compiled_model has set it
    if not applied.has_requirements:
        return
    for index in range(model._model.GetNumSignatures()):
        with suppress(Exception):  # using the signature raises it again
            _let_prepare(model, index)
    applied.check(observer)
    applied.require_memory(observer)


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    name = method.__name__
    kind = name.partition("_")[0]
    if name.startswith("create_output"):
        kind = "create"
    elif kind == "create":
        kind = "get"
    call = {"run": _run, "resize": _resize, "create": _create}.get(kind, _call)

    @functools.wraps(method)
    def guarded(self: DelegatedModel, *arguments: Any, **named: Any) -> Any:
        return call(self, method, *arguments, **named)

    return guarded


@functools.cache
def _class(official: type) -> Any:
    """Return a subclass of the official ``CompiledModel`` with delegates."""
    methods = {
        name: _guarded(found)
        for name, found in vars(official).items()
        if isinstance(found, FunctionType) and not name.startswith("_") and name != "close"
    }
    namespace = {"__doc__": official.__doc__, "__module__": official.__module__, **methods}
    return type(official.__name__, (DelegatedModel, official), namespace)
