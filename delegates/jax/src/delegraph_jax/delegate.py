"""The delegate: claims nodes, and compiles each partition to one XLA function."""

from __future__ import annotations

from functools import partial

from delegraph import (
    Capabilities,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tolerance,
)
from delegraph.operators import Numerics, options_or_defaults
from delegraph_jax.devices import device_named
from delegraph_jax.graphs import calls, check_called
from delegraph_jax.kernel import JaxKernel
from delegraph_jax.operators import OPERATORS, operator_of
from delegraph_jax.options import JaxOptions
from delegraph_jax.traced import TracedPartition

CAPABILITIES = Capabilities(
    [entry.claim for entries in OPERATORS.values() for entry in entries],
    tolerance={"FLOAT32": Tolerance(1e-4, 1e-5)},
)


class JaxDelegate(SimpleDelegateInterface):
    """Delegate that claims nodes whose operator has a JAX function in ``operators``."""

    def __init__(self, options: JaxOptions) -> None:
        self._options = options
        self.device = device_named(options.device)
        self._partitions: list[TracedPartition] = []

    @property
    def partitions(self) -> list[TracedPartition]:
        """The partitions of the delegate's open kernels, as functions; see :mod:`.gradients`."""
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
        supports = partial(self._supports, context.numerics)
        answer = supports(registration, node, context)
        return check_called(node, context, supports) if answer and calls(node) else answer

    def _supports(
        self, numerics: Numerics, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        """Return True if *node* is supported with the rounding *numerics*, else a rejection.

        Subgraphs that the node calls are not checked.
        """
        answer = CAPABILITIES.check(registration, node, context)
        if not answer:
            return answer
        tensors = context.tensors
        operator = operator_of(registration.name, node, tensors)
        if numerics not in operator.numerics:
            expected = " or ".join(operator.numerics)
            return Rejection("numerics", actual=numerics, expected=expected)
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
