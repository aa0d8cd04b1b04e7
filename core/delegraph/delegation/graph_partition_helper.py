"""Finds a delegate's partitions: asks about each node, then chooses the largest partitions.

Source:
    GraphPartitionHelper, FP16GraphPartitionHelper; tflite/delegates/utils.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from delegraph.delegation.delegate import (
    DelegateContext,
    DelegateOptions,
    DelegateParams,
    raise_if_requested,
)
from delegraph.delegation.rejections import Rejection, collect_rejections
from delegraph.operators.registration import Node, Registration
from delegraph.schema.enums import BuiltinOperator, TensorType

IsNodeSupported: TypeAlias = Callable[[Registration, Node, DelegateContext], bool | Rejection]
"""Function that returns whether a delegate supports a node, or a rejection.

It is called once for each node, in plan order.
"""


class GraphPartitionHelper:
    """Finds the partitions of the supported nodes, and selects the largest ones.

    Delegates that do their own partitioning use this class. A ``SimpleDelegateInterface`` gets the
    same result by its ``delegate_options()``::

        def prepare(self, context):
            helper = GraphPartitionHelper(context, self.supports)
            helper.partition()
            nodes = helper.get_nodes_of_first_n_largest_partitions(n=3)
            context.replace_node_subsets_with_delegate_kernels(self.registration, nodes, self)

    Partitions of the same size keep the order of the plan; in TFLite their order is undefined.

    Attributes:
        num_total_nodes: number of nodes in the execution plan, or the length of the given list of
            nodes.
        num_supported_nodes: number of nodes that the delegate supports; 0 if a list of nodes was
            given.
    """

    def __init__(
        self,
        context: DelegateContext,
        supported: IsNodeSupported | Iterable[int],
        *,
        delegate: str = "",
    ) -> None:
        """Store the arguments that :meth:`partition` needs.

        Args:
            context: context of the subgraph to which a delegate is being applied.
            supported: predicate that is called with each node, or a list of the supported nodes'
                indices.
            delegate: the delegate's name, for errors.
        """
        self._context = context
        self._is_supported = supported if callable(supported) else None
        self._supported: list[int] = [] if callable(supported) else [int(i) for i in supported]
        self._delegate = delegate
        self._partitions: list[DelegateParams] | None = None  # computed when needed
        self._unsupported: dict[int, Rejection] = {}
        self._not_chosen: dict[int, Rejection] = {}
        self.num_total_nodes = 0
        self.num_supported_nodes = 0

    @property
    def num_partitions(self) -> int:
        """Number of partitions of the supported nodes, before any selection."""
        return len(self._previewed())

    @property
    def rejections(self) -> dict[int, Rejection]:
        """Reasons for rejected nodes, by node index, from the predicate or the last selection."""
        return self._unsupported | self._not_chosen

    def partition(self, start_node_index: int = 0, end_node_index: int | None = None) -> None:
        """Ask the predicate about each node; partitions are computed when needed.

        Args:
            start_node_index: supported nodes with a smaller node index are not delegated.
            end_node_index: supported nodes with a larger node index are not delegated; None means
                no limit. After the first such node, the predicate is not called any more.

        Raises:
            DelegateError: the predicate raised an error or returned no valid answer; the error
                names the node.
        """
        self._not_chosen = {}
        self._partitions = None
        if self._is_supported is None:
            self.num_total_nodes = len(self._supported)
        else:
            self._ask_about_the_plan(start_node_index, end_node_index)

    def get_first_n_largest_partitions(
        self, n: int | None = None, min_nodes_per_partition: int = 0
    ) -> list[DelegateParams]:
        """Return the *n* partitions with the most nodes, largest first; None returns all.

        Partitions with fewer than *min_nodes_per_partition* nodes are omitted. If *n* is 0, the
        result is empty, whereas 0 in ``DelegateOptions`` means no limit.

        Raises:
            PartitionError: the graph cannot be partitioned.
        """
        self._not_chosen = {}
        by_size = sorted(self._previewed(), key=lambda params: -len(params.nodes_to_replace))
        chosen = []
        for rank, params in enumerate(by_size, 1):
            size = len(params.nodes_to_replace)
            if n is not None and rank > n:
                reason = Rejection("max-delegated-partitions", actual=rank, expected=max(n, 0))
            elif size < min_nodes_per_partition:
                reason = Rejection(
                    "min-nodes-per-partition", actual=size, expected=min_nodes_per_partition
                )
            else:
                chosen.append(params)
                continue
            self._not_chosen.update(dict.fromkeys(params.nodes_to_replace, reason))
        return chosen

    def get_nodes_of_first_n_largest_partitions(
        self, n: int | None = None, min_nodes_per_partition: int = 0
    ) -> list[int]:
        """Return node indices of the *n* largest partitions, one partition after the other.

        The arguments are those of :meth:`get_first_n_largest_partitions`.
        """
        chosen = self.get_first_n_largest_partitions(n, min_nodes_per_partition)
        return [index for params in chosen for index in params.nodes_to_replace]

    def get_nodes_within(self, options: DelegateOptions) -> list[int]:
        """Return the nodes of the largest partitions within the limits of *options*."""
        limit, minimum = options.max_delegated_partitions, options.min_nodes_per_partition
        if limit <= 0 and minimum <= 1:
            return self._take_all()
        return self.get_nodes_of_first_n_largest_partitions(limit if limit > 0 else None, minimum)

    def _take_all(self) -> list[int]:
        """Return all supported nodes, without the slow computation of partitions."""
        self._not_chosen = {}
        return list(self._supported)

    def _previewed(self) -> list[DelegateParams]:
        if self._partitions is None:
            self._partitions = self._context.preview_delegate_partitioning(self._supported)
        return self._partitions

    def _ask_about_the_plan(self, start: int, end: int | None) -> None:
        plan = self._context.get_execution_plan()
        refused = self._context.refused_nodes

        def ask(registration: Registration, node: Node) -> bool | Rejection:
            found = refused.get(node.index)
            return self._answer(registration, node) if found is None else found

        self._unsupported = collect_rejections(
            map(self._context.get_node_and_registration, plan),
            ask,
            delegate=self._delegate,
            first=start,
            last=end,
        )
        self._supported = [index for index in plan if index not in self._unsupported]
        self.num_total_nodes = len(plan)
        self.num_supported_nodes = len(self._supported)

    def _answer(self, registration: Registration, node: Node) -> bool | Rejection:
        assert self._is_supported is not None
        raise_if_requested(self._context)
        return self._is_supported(registration, node, self._context)


class FP16GraphPartitionHelper(GraphPartitionHelper):
    """Skips DEQUANTIZE nodes, for delegates that compute with float16 constants themselves.

    In a float16 model every weight is a float16 constant that a DEQUANTIZE node turns into float32.
    The predicate receives nodes that read the float16 constants directly. The chosen nodes keep
    these inputs until the delegate is removed. The DEQUANTIZE nodes themselves are not chosen,
    unless all other nodes of the subgraph are supported. Then the whole plan is chosen, without
    limits on partitions, and the kernel gets the DEQUANTIZE nodes as well.

    A predicate for this class must check the types of weights: a kernel for float32 weights may not
    work with float16 weights.
    """

    def __init__(
        self,
        context: DelegateContext,
        supported: IsNodeSupported | Iterable[int],
        *,
        delegate: str = "",
    ) -> None:
        super().__init__(context, supported, delegate=delegate)
        self._float16_of: dict[int, int] = {}  # float32 tensor to the constant it is made from
        self._dequantize: list[int] = []

    def partition(self, start_node_index: int = 0, end_node_index: int | None = None) -> None:
        """Find the partitions as the base class does, but with nodes that read float16 constants.

        The arguments are those of the base class. The predicate receives nodes whose input is the
        float16 constant, in place of the DEQUANTIZE node's output.
        """
        self._float16_of, self._dequantize = {}, []
        super().partition(start_node_index, end_node_index)

    def get_nodes_of_first_n_largest_partitions(
        self, n: int | None = None, min_nodes_per_partition: int = 0
    ) -> list[int]:
        """Return the nodes of the *n* largest partitions, and let them read float16 constants.

        Partitions with fewer than *min_nodes_per_partition* nodes are omitted. Call this method
        once, and replace the returned nodes.
        """
        nodes = self._whole_plan()
        if nodes is None:
            nodes = super().get_nodes_of_first_n_largest_partitions(n, min_nodes_per_partition)
        for index in nodes:
            node, _ = self._context.get_node_and_registration(index)
            node.inputs = self._looking_through(node)
        return nodes

    def _take_all(self) -> list[int]:
        return self.get_nodes_of_first_n_largest_partitions()

    def _whole_plan(self) -> list[int] | None:
        """Return the whole plan, with DEQUANTIZE nodes, if all other nodes are supported, or None.

        The result is also None if the user's rules exclude nodes.
        """
        if not self._supported or (
            self.num_supported_nodes + len(self._float16_of) != self.num_total_nodes
        ):
            return None
        plan = list(self._context.get_execution_plan())
        partitions = self._context.preview_delegate_partitioning(plan)
        if sum(len(params.nodes_to_replace) for params in partitions) != len(plan):
            return None  # the user excludes nodes
        self._not_chosen = {}
        for index in self._dequantize:
            self._unsupported.pop(index, None)
        return plan

    def _answer(self, registration: Registration, node: Node) -> bool | Rejection:
        if registration.builtin_code == BuiltinOperator.DEQUANTIZE and self._is_float16(node):
            self._float16_of[node.outputs[0]] = node.inputs[0]
            self._dequantize.append(node.index)
            return _LOOKED_THROUGH
        inputs, node.inputs = node.inputs, self._looking_through(node)
        try:
            return super()._answer(registration, node)
        finally:
            node.inputs = inputs

    def _is_float16(self, node: Node) -> bool:
        if not node.inputs or node.inputs[0] < 0:
            return False
        tensor = self._context.tensors[node.inputs[0]]
        return tensor.type == TensorType.FLOAT16 and tensor.is_constant

    def _looking_through(self, node: Node) -> tuple[int, ...]:
        return tuple(self._float16_of.get(i, i) for i in node.inputs)


_LOOKED_THROUGH = Rejection(
    "float16-constant", "the delegate reads the float16 constant itself, through other nodes"
)
