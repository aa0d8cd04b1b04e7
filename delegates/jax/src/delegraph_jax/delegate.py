"""The delegate: claims nodes, and gives each partition to XLA as one function."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable

from delegraph import (
    Capabilities,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tolerance,
)
from delegraph.operators.checks import options_or_defaults
from delegraph_jax.compiling import compile_safely, version
from delegraph_jax.devices import device_named
from delegraph_jax.operators import OPERATORS, operator_of
from delegraph_jax.options import JaxOptions
from delegraph_jax.traced import TracedPartition

CAPABILITIES = Capabilities(
    [entry.claim for entries in OPERATORS.values() for entry in entries],
    tolerance={"FLOAT32": Tolerance(1e-4, 1e-5)},
)


class JaxDelegate(SimpleDelegateInterface):
    """Takes nodes whose operator has a function in ``operators``."""

    def __init__(self, options: JaxOptions) -> None:
        self._options = options
        self.device = device_named(options.device)
        self._partitions: list[TracedPartition] = []

    @property
    def partitions(self) -> list[TracedPartition]:
        """Return the partitions taken and not closed, as functions; see :mod:`.gradients`."""
        return list(self._partitions)

    def name(self) -> str:
        return "jax"

    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def delegate_options(self) -> DelegateOptions:
        return DelegateOptions(min_nodes_per_partition=self._options.min_nodes)

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = CAPABILITIES.check(registration, node, context)
        if not answer:
            return answer
        tensors = context.tensors
        operator = operator_of(registration.name, node, tensors)
        for position in operator.constants:
            index = node.inputs[position] if position < len(node.inputs) else -1
            if index >= 0 and not tensors[index].is_constant:
                return Rejection("parameter", actual="computed", expected="constant", tensor=index)
        for index in (*node.inputs, *node.outputs):
            if index >= 0 and tensors[index].is_variable:
                return Rejection("variable", tensor=index)
        if operator.check is not None:
            rejection = operator.check(options_or_defaults(node, registration.name), node, tensors)
            return True if rejection is None else rejection
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return JaxKernel(self.device, self._partitions)


class JaxKernel(SimpleDelegateKernelInterface):
    """One partition."""

    def __init__(self, device: jax.Device, partitions: list[TracedPartition]) -> None:
        self._device = device
        self._partitions = partitions
        self._compiled: dict[tuple[tuple[int, ...], ...], Any] = {}

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self._params = params
        self.traced = TracedPartition(context, params)
        self._partitions.append(self.traced)
        self._inputs = [context.tensors[i] for i in self.traced.inputs]
        self._outputs = [context.tensors[i] for i in self.traced.outputs]

    def prepare(self, context: DelegateContext, node: Node) -> None:
        shapes = tuple(tensor.shape for tensor in (*self._inputs, *self._outputs))
        if shapes not in self._compiled:
            self._compiled = {shapes: self._compile(context)}
        self._run = self._compiled[shapes]

    def eval(self, context: DelegateContext, node: Node) -> None:
        with jax.enable_x64(True):
            results = self._run(*[tensor.data for tensor in self._inputs])
        for tensor, result in zip(self._outputs, results, strict=True):
            np.copyto(tensor.data, np.asarray(result))

    def close(self) -> None:
        self._compiled = {}
        if self.traced in self._partitions:
            self._partitions.remove(self.traced)

    def _compile(self, context: DelegateContext) -> Any:
        """Return the executable for the shapes of now, from the cache if it is there."""
        platform = self._device.platform
        key = f"{self._params.partition_model().digest} {platform} {self._device.device_kind}"
        path = context.cache("jax", version()).get_or_make(key, self._executable)
        return serialize_executable.deserialize_and_load(
            path.read_bytes(),
            jax.tree.structure((tuple(self._inputs), {})),
            jax.tree.structure(self._outputs),
            backend=platform,
            execution_devices=[self._device],
        )

    def _executable(self) -> bytes:
        with jax.enable_x64(True), jax.default_device(self._device):
            arguments = [
                jax.ShapeDtypeStruct(tensor.shape, tensor.dtype) for tensor in self._inputs
            ]
            lowered = jax.jit(self.traced, keep_unused=True).lower(*arguments)
            compiled = compile_safely(lowered, self._device.platform)
        payload: bytes = serialize_executable.serialize(compiled)[0]
        return payload
