"""``Interpreter``, the class that users create: a drop-in for the official Python class.

Source:
    Interpreter, tflite/python/interpreter.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import is_
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from delegraph.runtime.arguments import (
    OpResolverType,
    checked_num_threads,
    default_delegates_are_wanted,
    model_of,
    numerics_of,
    resolver_type,
    tensor_at,
    unexpected_keyword,
)
from delegraph.runtime.details import tensor_details
from delegraph.runtime.members import (
    InvokesAsync,
    NotebookView,
    OfficialMembers,
    TakesDelegates,
    warn_of_kept_tensors,
)
from delegraph.runtime.session_owner import OwnsSession, import_session
from delegraph.runtime.tensor_access import MemoryViews, read_tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from delegraph.operators.custom_op import AnyCustomOp
    from delegraph.operators.numerics import Numerics
    from delegraph.operators.registration import CallableSubgraph
    from delegraph.runtime.arguments import AnyPath
    from delegraph.runtime.delegates.requested_delegates import AnyDelegate, ManyDelegates
    from delegraph.runtime.execution.profile import Profile
    from delegraph.runtime.options import FailurePolicy, Limits, PlacementPolicy
    from delegraph.runtime.signature_runner import SignatureRunner


_FIRST = 0
"""Index of the first subgraph; compared by ``is``, because Python has one object per small int."""

_USUAL = (None, None, OpResolverType.AUTO, *[False] * 6, *[None] * 8)
"""Default values of the constructor's arguments, without path and number of threads."""


class Interpreter(OwnsSession, OfficialMembers, TakesDelegates, NotebookView, InvokesAsync):
    """Runs a ``.tflite`` model; delegates may compute parts of it.

    The constructor arguments, methods, detail dictionaries, dtypes and error types are those of
    ``ai_edge_litert.interpreter.Interpreter``; arguments after the ``*`` are additions. An
    interpreter runs one call at a time, so each thread needs its own.

    Args:
        model_path: a ``.tflite`` file, or ``FILE#SECTION`` of a bundle; it is mapped, not read.
        model_content: the bytes of a model, kept without a copy. Give this or ``model_path``.
        experimental_delegates: delegates to apply, in order.
        num_threads: threads that kernels may use, >= 1; above eight for each processor, they are
            reduced with a warning. None means one for Delegraph's kernels; delegates choose.
        experimental_op_resolver_type: ``BUILTIN_REF`` means ``numerics="reference"``; it and
            ``BUILTIN_WITHOUT_DEFAULT_DELEGATES`` apply no delegates that were not named.
        experimental_preserve_all_tensors: keep intermediate tensors readable after ``invoke``.
        experimental_disable_delegate_clustering: partition in plan order, not greedily.
        experimental_default_delegate_latest_features: accepted; it changes nothing here.
        experimental_compress_quantization_zero_points: accepted; results are the same.
        experimental_disable_delegate_node_fusion: one node in each delegated partition.
        experimental_force_delegate_node_profiling: profile delegate nodes as a whole only.
        delegates: ``["openvino", "sin:x=1"]``; a set or mapping is applied by rank. None means the
            delegates of the user's ``delegraph.toml``. Delegates that the model's operators need
            come first; an installed default delegate gets the other nodes. ``[]`` means none.
        custom_ops: custom operators of this interpreter, by name.
        numerics: round as the official ``"builtin"`` or ``"reference"`` kernels where they differ.
        placement: which nodes delegates may claim: ``PlacementPolicy(rules, require, partitions)``.
        limits: limits on the model's memory, time and size:
            ``Limits(memory, time, tables, depth, cancellation, weights_dir)``.
        failures: reaction to failures of delegates, and which delegates run in separate processes:
            ``FailurePolicy(on_failure, validate, shadow_share, isolate, timeout)``.
        on_loaded: function that is called after the model is loaded and before delegates are
            applied, to measure their times separately.
        cache_dir: folder for compiled partitions of delegates; default: the user's cache folder.
        deprecated: fields of ``placement``, ``limits`` and ``failures`` as keywords, until 0.3.

    Raises:
        ArgumentError: (ValueError) an argument is wrong, or the file does not exist.
        MalformedModelError: (ValueError) the model is damaged.
        SectionError: (ValueError) the bundle does not have the requested model, or has several.
        ExternalBufferError: (ValueError) constants in another file cannot be used.
        UnsupportedModelError: (ValueError) an operator has no kernel, or calls are too deep.
        PluginError: a delegate that is requested by name is missing or broken.
        DelegateError: (RuntimeError) a delegate failed.
        PlacementError: (RuntimeError) nodes are not where ``placement`` wants them.
        TimeLimitError: (RuntimeError) applying the delegates took more than ``limits.time``.
    """

    def __init__(
        self,
        model_path: AnyPath | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[AnyDelegate] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        delegates: ManyDelegates | None = None,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        numerics: Numerics | None = None,
        placement: PlacementPolicy | None = None,
        limits: Limits | None = None,
        failures: FailurePolicy | None = None,
        cache_dir: AnyPath | None = None,
        on_loaded: Callable[[], object] | None = None,
        **deprecated: Any,
    ) -> None:
        self._views = MemoryViews()
        num_threads = checked_num_threads(num_threads)
        others = (
            model_content, experimental_delegates, experimental_op_resolver_type,
            experimental_preserve_all_tensors, experimental_disable_delegate_clustering,
            experimental_default_delegate_latest_features,
            experimental_compress_quantization_zero_points,
            experimental_disable_delegate_node_fusion,
            experimental_force_delegate_node_profiling, delegates, custom_ops, numerics, placement,
            limits, failures, cache_dir, on_loaded,
        )  # fmt: skip
        self._keep(model_content, experimental_compress_quantization_zero_points)
        is_usual = not deprecated and all(map(is_, others, _USUAL))
        if model_path and is_usual and self._starts_as_kept(model_path, num_threads):
            return
        import_session()
        from delegraph.runtime.options import InterpreterOptions, groups_of  # lazy: as above

        groups = groups_of(placement, limits, failures, deprecated)
        for name in deprecated:
            raise unexpected_keyword(Interpreter.__init__, name)
        resolver = resolver_type(experimental_op_resolver_type)
        if experimental_preserve_all_tensors and default_delegates_are_wanted(resolver):
            warn_of_kept_tensors()
        options = InterpreterOptions(
            recommended_num_threads=-1 if num_threads is None else num_threads,
            numerics=numerics_of(resolver) if numerics is None else numerics,
            preserve_all_tensors=experimental_preserve_all_tensors,
            disable_delegate_clustering=experimental_disable_delegate_clustering,
            disable_delegate_node_fusion=experimental_disable_delegate_node_fusion,
            force_delegate_node_profiling=experimental_force_delegate_node_profiling,
            cache_dir=cache_dir,
            **groups,
        )
        granted = options.limits
        model = model_of(
            model_path, model_content, granted.tables, granted.memory, granted.weights_dir
        )
        both = experimental_delegates, delegates
        self._open(model, options, custom_ops or {}, both, resolver, on_loaded)

    # -- running -------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Prepare all nodes and allocate the tensors; required before inputs are set.

        Raises:
            StateError: a view from ``tensor()`` is alive, or another call runs.
            NodeError: a node cannot be prepared; the error names it.
            UnresolvedOpError: custom operators have no implementation.
            PlacementError: nodes are not where ``placement`` wants them.
        """
        self._views.require_none()
        start = self._kept_start
        if start is not None and start.allocate():
            return
        self.session.calls.run("allocate_tensors", self.session.allocate_first)
        if self._start_request is not None:
            self._keep_start(self._start_request)

    def invoke(self) -> None:
        """Run the model on the input data that has been set.

        Raises:
            StateError: tensors are not allocated, a view from ``tensor()`` is alive, or another
                call runs.
            NodeError: a node failed.
            CallCancelledError: :meth:`cancel` was called meanwhile.
            TimeLimitError: the call took more than ``limits.time``.
        """
        call = self._shortcuts.invoke
        if call is not None and not self._views.alive:
            call()
            return
        self._views.require_none()
        start = self._kept_start
        if start is None or not start.invoke():
            self.session.calls.run("invoke", self._primary.invoke)

    def cancel(self) -> None:
        """Stop the running call; may be called from another thread, a signal handler or a kernel.

        The running call raises ``CallCancelledError`` before its next node or loop iteration, or
        earlier if a delegate's kernel checks for it. If no call runs, nothing happens; no later
        call is stopped.
        """
        running = self._session or self._kept_start
        if running is not None:
            running.cancellation.request()

    def resize_tensor_input(
        self, input_index: int, tensor_size: ArrayLike, strict: bool = False
    ) -> None:
        """Set the shape of a tensor; ``allocate_tensors`` must follow.

        Args:
            input_index: index of any tensor that is not constant.
            tensor_size: the new dimensions.
            strict: allow changes only where ``shape_signature`` has -1.

        Raises:
            ArgumentError: *tensor_size* is not a list of dimensions.
            StateError: a view from ``tensor()`` is alive, or another call runs.
            ResizeError: (RuntimeError) the tensor does not exist, or cannot have the shape.
        """
        self._views.require_none()
        run, resize = self.session.calls.run, self.session.resize_tensor
        run("resize_tensor_input", resize, self._primary, input_index, tensor_size, strict)

    def reset_all_variables(self) -> None:
        """Set every variable tensor of the model to zero.

        Raises:
            StateError: another call runs.
        """
        self.session.calls.run("reset_all_variables", self.session.reset_variables)

    # -- data ----------------------------------------------------------------------------------

    def set_tensor(self, tensor_index: int, value: ArrayLike) -> None:
        """Copy *value* into a tensor; dtype and shape must be those of ``get_input_details``.

        Raises:
            ArgumentError: the tensor does not exist, has another dtype or shape, or no memory yet.
            StateError: another call runs.
        """
        shortcuts = self._shortcuts
        target = shortcuts.small_targets.get(tensor_index) if type(tensor_index) is int else None
        if target is not None and type(value) is ndarray:
            tensor, data, dtype, shape = target
            if (
                value.dtype is dtype
                and value.shape == shape
                and tensor.data is data
                and tensor.delegate is None
                and not shortcuts.turn
            ):
                data[...] = value
                return
        start = self._kept_start
        if start is not None and start.write(tensor_index, value):
            return
        session = self.session
        session.calls.run("set_tensor", session.write_first, tensor_index, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        """Return a copy of a tensor's values; a NumPy scalar for a tensor without dimensions.

        Intermediate tensors share memory, so their values are lost after a run, unless
        ``experimental_preserve_all_tensors`` is set.

        Raises:
            ArgumentError: the tensor does not exist, or has no data.
            StateError: another thread's call runs.
        """
        shortcuts = self._shortcuts
        if subgraph_index is _FIRST and type(tensor_index) is int:
            source = shortcuts.sources.get(tensor_index)
            if source is not None:
                tensor, plain_type = source
                if not (
                    shortcuts.turn
                    or tensor.data_is_stale
                    or tensor.type is not plain_type
                    or (data := tensor.data) is None
                    or not tensor.shape
                ):
                    return data.copy()
        self.session.calls.check("get_tensor")
        subgraph = self.session.subgraph(subgraph_index)
        tensor = subgraph.readable(tensor_at(subgraph.tensors, tensor_index).index)
        value = read_tensor(tensor, subgraph.is_allocated)
        if subgraph is self._primary and tensor.index in subgraph.outputs:
            subgraph.shortcuts.add_source(tensor)
        return value

    def tensor(self, tensor_index: int) -> Callable[[], Any]:
        """Return a function that gives a writable view of a tensor, without a copy.

        While a view or a slice of one is alive, ``allocate_tensors``, ``invoke`` and
        ``resize_tensor_input`` raise an error; the function itself may be kept. For a tensor
        without dimensions the function returns a NumPy scalar, and for strings a copy. It raises
        ``ArgumentError`` if the tensor does not exist or has no data.
        """

        def view() -> Any:
            self.session.calls.check("the function that tensor() returned")
            tensor = tensor_at(self._primary.tensors, tensor_index)
            self._primary.buffers.make_readable(tensor)
            return self._views.of(tensor, self._primary.is_allocated)

        return view

    # -- description ---------------------------------------------------------------------------

    def get_input_details(self) -> list[dict[str, Any]]:
        """Return name, index, shape, shape_signature, dtype and quantization of each input."""
        return list(map(tensor_details, self._border("inputs")))

    def get_output_details(self) -> list[dict[str, Any]]:
        """Return a dictionary for each output, with the keys of :meth:`get_input_details`."""
        return list(map(tensor_details, self._border("outputs")))

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Return the details of every tensor of a subgraph."""
        return [tensor_details(tensor) for tensor in self.session.subgraph(subgraph_index).tensors]

    def subgraph(self, index: int = 0) -> CallableSubgraph:
        """Return the running subgraph *index*, whose tensors can be read without a copy.

        Raises:
            ArgumentError: the subgraph does not exist.
        """
        return self.session.callee(index)

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs of the model."""
        return len(self.session.subgraphs)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return input and output names of each signature."""
        return self._signature_defs

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a callable for a signature; a model with one signature needs no key.

        Raises:
            ArgumentError: the key is unknown, or None for a model without exactly one signature.
        """
        from delegraph.runtime.signature_runner import (
            SignatureRunner,  # lazy import: few models have signatures that are called by name
            only_signature,
        )

        if signature_key is None:
            signature_key = only_signature(self.session.model)
        return SignatureRunner(self, signature_key)

    @property
    def numerics(self) -> Numerics:
        """Official kernels whose rounding is reproduced: ``"builtin"`` or ``"reference"``."""
        return self.session.options.numerics

    def profile(self, *, whole_partitions: bool = False) -> AbstractContextManager[Profile]:
        """Return a context that records the run time of each node; ``print`` shows it as a table.

        ``with interpreter.profile() as profile: interpreter.invoke()``, then ``print(profile)``, or
        ``profile.rows()`` for a data frame.

        Args:
            whole_partitions: record delegate nodes as a whole even if the delegate records the
                nodes in them.
        """
        return self.session.profiling(whole_partitions=whole_partitions)
