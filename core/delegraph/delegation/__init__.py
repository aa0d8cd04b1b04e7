"""How delegates take over parts of a graph: interfaces, partitioning, placement."""

from delegraph.delegation.delegate import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
)
from delegraph.delegation.partitioner import (
    GraphInfo,
    NodeInfo,
    NodeSubset,
    partition_graph_into_independent_node_subsets,
)
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
    SimpleDelegate,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)

__all__ = [
    "Delegate",
    "DelegateContext",
    "DelegateFlags",
    "DelegateOptions",
    "DelegateParams",
    "GraphInfo",
    "NodeInfo",
    "NodeSubset",
    "Rejection",
    "SimpleDelegate",
    "SimpleDelegateInterface",
    "SimpleDelegateKernelInterface",
    "partition_graph_into_independent_node_subsets",
]
