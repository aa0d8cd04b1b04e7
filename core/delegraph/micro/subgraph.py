"""A subgraph of a micro interpreter, with fixed shapes and memory assigned once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.graph.calls import called_subgraphs
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.micro.context import MicroContext, MicroRun
from delegraph.micro.layout import Layout
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.operators.tensor import Tensor, runtime_tensors
from delegraph.runtime.execution.node_errors import cause_of, node_error
from delegraph.runtime.execution.steps import StepRunner
from delegraph.runtime.op_resolver import OpResolver
from delegraph.runtime.subgraph_memory import view


class MicroSubgraph:
    """Tensors, nodes and steps of one subgraph of a micro interpreter.

    Attributes:
        spec: the subgraph as the model declares it.
        tensors: tensors of the subgraph, by index.
        context: context of its kernels.
    """

    def __init__(self, spec: SubgraphSpec, run: MicroRun, resolver: OpResolver) -> None:
        self.spec = spec
        self.tensors = runtime_tensors(spec)
        self.context = MicroContext(spec, self.tensors, run)
        self._run = run
        self._registrations = [resolver.resolve(operator) for operator in spec.operators]
        self._nodes = [Node.from_operator(operator) for operator in spec.operators]
        self._steps: StepRunner | None = None  # set when preparation has begun

    @property
    def uses_blas(self) -> bool:
        """Whether any node of the subgraph multiplies matrices."""
        return any(registration.uses_blas for registration in self._registrations)

    @property
    def inputs(self) -> Sequence[int]:
        """Indices of the subgraph's input tensors."""
        return self.spec.inputs

    @property
    def outputs(self) -> Sequence[int]:
        """Indices of the subgraph's output tensors."""
        return self.spec.outputs

    @cached_property
    def callee(self) -> MicroCallee:
        """The subgraph in the form that control-flow operators use, available after prepare."""
        return MicroCallee(self.spec, self.tensors, self.context.resize_tensor, self.invoke)

    @property
    def stand_in_bytes(self) -> int:
        """Number of bytes of input and output copies outside the arena; 0 if never called."""
        return self.callee.bytes if "callee" in self.__dict__ else 0

    # -- allocation ------------------------------------------------------------------------------

    def init(self, layout: Layout) -> None:
        """Reserve the data of each TFLM kernel in *layout*, then call the kernel's own ``init``."""
        for operator, node, registration in self._calls():
            layout.init(self.spec.index, operator)
            if registration.init is not None:
                try:
                    node.user_data = registration.init(self.context, node)
                except Exception as error:  # noqa: BLE001 - raised on as the node's
                    raise node_error(node, registration, "initialize", error) from cause_of(error)

    def prepare(self, layout: Layout) -> None:
        """Prepare the nodes; subgraphs that a node calls are prepared before the node.

        *layout* reserves the memory of TFLM's kernels.

        Raises:
            NodeError: a kernel rejects its node, or a shape stays unknown.
            ArenaTooSmallError: the arena is too small.
        """
        if self._steps is None:
            self._steps = StepRunner(
                self.tensors,
                partial(self._prepare_node, layout),
                after_each=self._run.allocator.reset_temp_allocations,
                cancellation=self._run.cancellation,
            )
            self._steps.prepare(zip(self._nodes, self._registrations, strict=True))

    def _prepare_node(self, layout: Layout, node: Node, registration: Registration) -> Eval:
        operator = self.spec.operators[node.index]
        for index in called_subgraphs(operator.options):
            if 0 <= index < len(self._run.subgraphs):
                self._run.subgraphs[index].prepare(layout)
        layout.prepare(self.spec.index, operator)
        self._run.workspace.begin_node()
        step = registration.prepare(self.context, node)
        self._check_outputs(node)
        layout.finish_prepare(operator)
        return self._writing_known_outputs(node, step)

    def _writing_known_outputs(self, node: Node, step: Eval) -> Eval:
        """Return *step*, extended to write outputs that were already computed in prepare.

        Delegraph's kernels compute these outputs once, but other tensors may overwrite them in the
        arena.
        """
        outputs = [self.tensors[index] for index in node.outputs if index >= 0]
        known = [
            (tensor, tensor.data)
            for tensor in outputs
            if tensor.is_constant_or_persistent and tensor.type not in OBJECT_TYPES
        ]
        if not known:
            return step

        def write() -> None:
            step()
            for tensor, values in known:
                np.copyto(tensor.data, values)

        return write

    def _check_outputs(self, node: Node) -> None:
        for index in node.outputs:
            shape = self.tensors[index].shape if index >= 0 else ()
            if any(dim <= 0 for dim in shape) and shape != (0,):
                raise OperatorError(
                    f"{self.tensors[index]!r}: dynamic tensors are not supported by micro "
                    "interpreters"
                )
            if index >= 0 and self.tensors[index].type != self.spec.tensors[index].type:
                declared = self.spec.tensors[index].type.name
                raise OperatorError(
                    f"{self.tensors[index]!r} is declared as {declared}; a micro interpreter keeps "
                    "declared types"
                )

    def bind(self, memory: Sequence[NDArray[np.uint8] | None]) -> None:
        """Set the arrays of the tensors to parts of *memory*."""
        for tensor, raw in zip(self.tensors, memory, strict=True):
            if tensor.is_constant:
                continue
            if raw is not None:
                tensor.data = view(raw, tensor)
            elif tensor.type not in OBJECT_TYPES and tensor.bytes == 0:
                tensor.data = view(np.empty(0, np.uint8), tensor)

    def reset_variables(self) -> None:
        """Set every variable to zero; INT8 variables are set to their zero point."""
        for tensor in self.tensors:
            if tensor.is_variable and tensor.data is not None:
                tensor.data[...] = tensor.initial_value

    def free(self) -> None:
        """Free the data that each kernel's ``init`` returned."""
        for _, node, registration in self._calls():
            if registration.free is not None and node.user_data is not None:
                registration.free(node.user_data)
                node.user_data = None

    # -- invoke ----------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run the nodes; temporary memory is freed after each node.

        Raises:
            NodeError: a node failed; later nodes have not run.
        """
        assert self._steps is not None, "prepare() comes first"
        self._steps.run()

    def _calls(self) -> zip[tuple[OperatorSpec, Node, Registration]]:
        return zip(self.spec.operators, self._nodes, self._registrations, strict=True)


class MicroCallee:
    """A prepared subgraph, with copies of its inputs and outputs that outlast a run.

    All subgraphs share the head of the arena. So a subgraph's inputs are overwritten while it runs,
    and its outputs when the next subgraph runs. TFLM passes values from call to call in the calling
    node's outputs. Delegraph's kernels read the called subgraph's tensors instead. So the subgraph
    has copies of its inputs and outputs outside the arena (stand-ins), created before the first
    run.

    Args:
        spec: the subgraph, as declared.
        tensors: its tensors by index; its nodes must be prepared.
        resize: function that checks that a tensor's shape is the declared one.
        run: function that runs the nodes.

    Attributes:
        tensors: the subgraph's tensors, with stand-ins for its inputs and outputs.
        has_dynamic_tensors: False, because shapes are fixed.
    """

    has_dynamic_tensors = False

    def __init__(
        self,
        spec: SubgraphSpec,
        tensors: Sequence[Tensor],
        resize: Callable[[Tensor, Sequence[int]], None],
        run: Callable[[], None],
    ) -> None:
        self._spec = spec
        self._own = tensors
        self._resize = resize
        self._run = run
        self.tensors = list(tensors)
        for index in {*spec.inputs, *spec.outputs} - {-1}:
            self.tensors[index] = _stand_in(tensors[index])

    @property
    def inputs(self) -> Sequence[int]:
        """Indices of the subgraph's input tensors."""
        return self._spec.inputs

    @property
    def outputs(self) -> Sequence[int]:
        """Indices of the subgraph's output tensors."""
        return self._spec.outputs

    @property
    def operators(self) -> Sequence[OperatorSpec]:
        """The subgraph's nodes in the model file, in its order."""
        return self._spec.operators

    @property
    def bytes(self) -> int:
        """Number of bytes of the copies of inputs and outputs."""
        ends = {*self.inputs, *self.outputs} - {-1}
        return sum(self.tensors[i].bytes for i in ends if not self.tensors[i].is_constant)

    def allocate(self) -> None:
        """Do nothing: called subgraphs are prepared before the nodes that call them."""

    def resize_input(self, tensor_index: int, shape: tuple[int, ...]) -> None:
        """Check that *shape* is the declared shape of input *tensor_index*, a tensor index.

        Raises:
            OperatorError: *shape* differs.
        """
        self._resize(self.tensors[tensor_index], shape)

    def invoke(self) -> None:
        """Run the subgraph on the copies of its inputs."""
        for index in self.inputs:
            if index >= 0:
                _copy(self.tensors[index], self._own[index])
        self._run()
        for index in self.outputs:
            _copy(self._own[index], self.tensors[index])

    def readable(self, tensor_index: int) -> Tensor:
        """Return tensor *tensor_index*; here, its value is always up to date."""
        return self.tensors[tensor_index]


def _stand_in(tensor: Tensor) -> Tensor:
    if tensor.is_constant:
        return tensor
    stand_in = copy(tensor)
    if tensor.type not in OBJECT_TYPES:
        stand_in.data = view(np.zeros(tensor.bytes, np.uint8), tensor)
    return stand_in


def _copy(source: Tensor, target: Tensor) -> None:
    if target is source:
        return
    if target.type in OBJECT_TYPES:
        target.data = source.data
    else:
        np.copyto(target.data, source.data)
