"""A called subgraph of a micro interpreter, in the form that control-flow operators use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np

from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.operators.tensor import Tensor
from delegraph.runtime.subgraph_memory import view


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
