"""Runs a model in an arena of fixed size, as TensorFlow Lite for Microcontrollers does.

Source:
    MicroInterpreter, tflite-micro/micro/micro_interpreter.cc.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from delegraph.errors import ArenaTooSmallError, ArgumentError, ModelError, StateError
from delegraph.graph.calls import require_depth
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.model import Model
from delegraph.micro.allocator import MicroAllocator, PlannerKind
from delegraph.micro.arena_memory import ArenaBuffer
from delegraph.micro.context import KernelScratch, MicroRun
from delegraph.micro.estimate import estimate_arena
from delegraph.micro.layout import Layout
from delegraph.micro.stage import MicroState
from delegraph.micro.subgraph import MicroSubgraph
from delegraph.micro.targets import TARGET_32, MicroTarget
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.operators.numerics import Numerics
from delegraph.operators.tensor import Tensor
from delegraph.runtime.arguments import check_count, check_seconds
from delegraph.runtime.execution.blas_threads import BlasThreads
from delegraph.runtime.execution.calls import Calls, Cancellation
from delegraph.runtime.op_resolver import OpResolver


class MicroInterpreter:
    """Runs a model in memory that the caller provides.

    Every tensor is in that memory, the arena, at the offset that TFLM's planner chooses. Memory for
    TFLM's own structures is reserved there as well. The kernels are Delegraph's own. Their working
    memory, which TFLM's kernels do not need, is outside the arena by default. So the arena has the
    same size as on a device.

    Args:
        model: path of a model file, its content, or a loaded model.
        arena: a ``bytearray`` or other writable memory, used as long as the interpreter exists; or
            an allocator, which several interpreters may use one after the other.
        custom_ops: mapping from the name of a custom operator to its implementation.
        target: sizes of TFLM's structures; ignored if *arena* is an allocator.
        preserve_all_tensors: whether every tensor keeps its value, by the linear planner; not
            allowed with an allocator.
        numerics: whether kernels round like the official builtin or reference ones; TFLM's rounding
            by default.
        kernel_scratch: ``"arena"`` makes the kernels' working memory scratch buffers of the arena.
        time_limit: seconds that each call of ``allocate_tensors`` or ``invoke`` may take.
        table_limit: largest number of operators, options and tensors in the file; by default a
            million. Ignored for a loaded model.
        depth_limit: largest depth of nested calls of subgraphs; by default 50.

    Raises:
        ArgumentError: a limit is invalid.
        MalformedModelError: the model is damaged or exceeds a limit.
        UnsupportedModelError: an operator has no kernel.
        ArenaTooSmallError: the arena is too small for the allocator.

    Example::

        interpreter = MicroInterpreter("hello_world.tflite", bytearray(2048))
        interpreter.allocate_tensors()
        interpreter.input(0).data[...] = 5
        interpreter.invoke()
        print(interpreter.output(0).data, interpreter.arena_used_bytes)
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str] | bytes,
        arena: ArenaBuffer | MicroAllocator,
        *,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        target: MicroTarget = TARGET_32,
        preserve_all_tensors: bool = False,
        numerics: Numerics = "micro",
        kernel_scratch: KernelScratch = "outside",
        time_limit: float | None = None,
        table_limit: int | None = None,
        depth_limit: int | None = None,
    ) -> None:
        check_seconds("time_limit", time_limit)
        check_count("table_limit", table_limit)
        check_count("depth_limit", depth_limit)
        self._model = _loaded(model, table_limit)
        require_depth(self._model, depth_limit)
        self._arena_bytes: int | None = None
        if isinstance(arena, MicroAllocator):
            if preserve_all_tensors:
                raise ArgumentError(
                    "preserve_all_tensors needs an arena; here the allocator decides"
                )
            allocator = arena
        else:
            self._arena_bytes = np.frombuffer(arena, np.uint8).size
            planner = _planner(preserve_all_tensors)
            allocator = MicroAllocator.create(arena, planner=planner, target=target)
        cancellation = Cancellation(time_limit)
        self._calls = Calls(cancellation)
        self._run = MicroRun(self._model, allocator, numerics, kernel_scratch, cancellation)
        resolver = OpResolver(custom_ops)
        self._subgraphs = [
            MicroSubgraph(spec, self._run, resolver) for spec in self._model.subgraphs
        ]
        self._run.subgraphs += self._subgraphs
        self._uses_blas = any(subgraph.uses_blas for subgraph in self._subgraphs)
        self._is_allocated = False
        self._failure: Exception | None = None

    # -- allocation ------------------------------------------------------------------------------

    @property
    def state(self) -> MicroState:
        """Stage that the interpreter has reached, such as prepare or invoke."""
        return self._run.stage.state

    @property
    def is_usable(self) -> bool:
        """Whether no call has failed so far: TFLM's ``initialization_status``."""
        return self._failure is None

    @property
    def arena_used_bytes(self) -> int:
        """Number of used bytes at both ends of the arena."""
        return self._run.allocator.used_bytes

    @property
    def outside_bytes(self) -> int:
        """Number of bytes outside the arena: working memory of kernels, and control-flow copies."""
        copies = sum(subgraph.stand_in_bytes for subgraph in self._subgraphs)
        return self._run.workspace.size + copies

    @property
    def preserves_all_tensors(self) -> bool:
        """Whether every tensor keeps its value, so that :meth:`tensor` may be called."""
        return self._run.allocator.preserves_all_tensors

    def allocate_tensors(self) -> None:
        """Prepare all nodes, and allocate every tensor in the arena.

        Raises:
            StateError: the tensors are already allocated, an earlier call failed, or another call
                runs.
            NodeError: a kernel rejects its node, or an output shape remains unknown.
            ArenaTooSmallError: the arena is too small; the message says how large it must be.
            MalformedModelError: the model's offline plan, or its calls of subgraphs, are invalid.
        """
        self._calls.run("allocate_tensors", self._allocate_once)

    def _allocate_once(self) -> None:
        self._require_usable("allocate_tensors")
        if self._is_allocated:
            raise StateError("allocate_tensors() comes once; the tensors are allocated")
        try:
            self._allocate()
        except ArenaTooSmallError as error:
            self._failure = error
            raise self._with_estimate(error) from error
        except Exception as error:
            self._failure = error
            raise
        self._is_allocated = True

    def _allocate(self) -> None:
        run = self._run
        is_outside = run.kernel_scratch == "outside"
        layout = Layout(self._model, run.allocator, reserve_scratch=is_outside)
        layout.start()
        run.stage.state = MicroState.INIT
        for subgraph in self._subgraphs:
            subgraph.init(layout)
        run.stage.state = MicroState.PREPARE
        for subgraph in self._subgraphs:
            subgraph.prepare(layout)
        run.stage.state = MicroState.MEMORY_PLANNING
        memory = layout.finish()
        for subgraph, tensors in zip(self._subgraphs, memory.tensors, strict=True):
            subgraph.bind(tensors)
        run.scratch = memory.scratch
        run.workspace.commit()
        self.reset_variables()
        run.stage.state = MicroState.INVOKE

    def _with_estimate(self, error: ArenaTooSmallError) -> ArenaTooSmallError:
        """Return *error* with the arena size that would suffice added to its text."""
        if self._arena_bytes is None:
            return error
        target = self._run.allocator.target
        planner = _planner(self.preserves_all_tensors)
        try:
            needed = estimate_arena(self._model, target=target, planner=planner)
        except (ModelError, StateError):
            return error
        return ArenaTooSmallError(
            f"the arena of {self._arena_bytes} bytes is too small; {needed.total_bytes} bytes are "
            f"estimated, give or take {needed.uncertainty_bytes} ({error})",
            missing=error.missing,
        )

    def reset_variables(self) -> None:
        """Set variables to zero, INT8 variables to their zero point, and clear all resources."""
        self._run.resources.clear()
        for subgraph in self._subgraphs:
            subgraph.reset_variables()

    def set_external_context(self, payload: object) -> None:
        """Pass the object *payload* to all kernels, which find it as their ``external_context``.

        The call is allowed once.

        Raises:
            ArgumentError: *payload* is None.
            StateError: an object was already passed.
        """
        self._subgraphs[0].context.set_external_context(payload)

    # -- tensors ---------------------------------------------------------------------------------

    @property
    def inputs_size(self) -> int:
        """Number of inputs of the first subgraph."""
        return len(self._model.subgraphs[0].inputs)

    @property
    def outputs_size(self) -> int:
        """Number of outputs of the first subgraph."""
        return len(self._model.subgraphs[0].outputs)

    def input(self, index: int) -> Tensor:
        """Return graph input *index*; write values to its ``data``, which is in the arena.

        Raises:
            StateError: :meth:`allocate_tensors` was not called.
            ArgumentError: the input does not exist.
        """
        return self._end_tensor("Input", self._model.subgraphs[0].inputs, index)

    def output(self, index: int) -> Tensor:
        """Return graph output *index*; its ``data`` is in the arena, valid until the next invoke.

        Raises:
            StateError: :meth:`allocate_tensors` was not called.
            ArgumentError: the output does not exist.
        """
        return self._end_tensor("Output", self._model.subgraphs[0].outputs, index)

    def _end_tensor(self, what: str, tensors: tuple[int, ...], index: int) -> Tensor:
        if not self._is_allocated:
            raise StateError(f"{what.lower()} {index} has no memory; allocate_tensors() first")
        if not 0 <= index < len(tensors):
            raise ArgumentError(f"{what} index {index} out of range (length is {len(tensors)})")
        return self._subgraphs[0].tensors[tensors[index]]

    def tensor(self, index: int, subgraph: int = 0) -> Tensor:
        """Return tensor *index* of a subgraph; possible only if all tensors keep their values.

        Raises:
            StateError: ``preserve_all_tensors`` is False, or :meth:`allocate_tensors` was not
                called.
            ArgumentError: the tensor does not exist.
        """
        if not self.preserves_all_tensors or not self._is_allocated:
            raise StateError("tensor() needs preserve_all_tensors=True and allocated tensors")
        subgraphs = self._subgraphs
        if not (0 <= subgraph < len(subgraphs) and 0 <= index < len(subgraphs[subgraph].tensors)):
            raise ArgumentError(f"no tensor {index} in subgraph {subgraph}")
        return subgraphs[subgraph].tensors[index]

    # -- invoke ----------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run subgraph 0; tensors are allocated first if they are not.

        Raises:
            StateError: the allocation failed, or another call runs.
            NodeError: a node failed; later nodes have not run.
            CallCancelledError: :meth:`cancel` was called during the run.
            TimeLimitError: the run took longer than ``time_limit``.
        """
        self._calls.run("invoke", self._invoke)

    def cancel(self) -> None:
        """Stop the running call, as ``Interpreter.cancel`` does."""
        self._run.cancellation.request()

    def _invoke(self) -> None:
        self._require_usable("invoke")
        if not self._is_allocated:
            self._allocate_once()
        with np.errstate(all="ignore"):
            if self._uses_blas:
                with BlasThreads(1):
                    self._subgraphs[0].invoke()
            else:
                self._subgraphs[0].invoke()

    def _require_usable(self, call: str) -> None:
        if self._failure is not None:
            raise StateError(f"{call}() called after initialization failed: {self._failure}")

    def close(self) -> None:
        """Free the data of all kernels and stop the time limit."""
        self._run.cancellation.close()
        for subgraph in self._subgraphs:
            subgraph.free()


def _planner(preserve_all_tensors: bool) -> PlannerKind:
    return "linear" if preserve_all_tensors else "greedy"


def _loaded(model: Model | str | os.PathLike[str] | bytes, table_limit: int | None) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, bytes):
        return parse_model(model, table_limit)
    return load_model(model, table_limit)
