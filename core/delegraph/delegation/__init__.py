"""How delegates take over parts of a graph: interfaces, partitioning, placement.

Open first: ``simple_delegate.py`` for the interface that most delegates implement,
``node_by_node.py`` for kernels without bookkeeping, ``driver.py`` for what drives them;
``delegate.py`` for the low-level interface and the context that delegates see; ``rejections.py``
for why a node was refused; ``partitioner.py`` and ``graph_partition_helper.py`` for which
partitions there are and which are taken; ``placement.py`` for where each node runs; ``rules.py``
for what users forbid; ``capabilities.py`` and ``tolerance.py`` for what a delegate claims;
``partition_model.py`` for a partition as a file; ``blob_cache.py`` and ``cache_files.py`` for files
that a delegate keeps.
"""

from delegraph.delegation.delegate import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
)
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.node_by_node import NodeByNodeKernel, NodeCall
from delegraph.delegation.partition_model import PartitionModel
from delegraph.delegation.partitioner import (
    GraphInfo,
    NodeInfo,
    NodeSubset,
    partition_graph_into_independent_node_subsets,
)
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import (
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
    "NodeByNodeKernel",
    "NodeCall",
    "NodeInfo",
    "NodeSubset",
    "PartitionModel",
    "Rejection",
    "SimpleDelegate",
    "SimpleDelegateInterface",
    "SimpleDelegateKernelInterface",
    "partition_graph_into_independent_node_subsets",
]
