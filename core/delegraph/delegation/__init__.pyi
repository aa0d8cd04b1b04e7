from .blob_cache import BlobCache as BlobCache
from .capabilities import Capabilities as Capabilities
from .capabilities import Claim as Claim
from .delegate import Delegate as Delegate
from .delegate import DelegateContext as DelegateContext
from .delegate import DelegateFlags as DelegateFlags
from .delegate import DelegateOptions as DelegateOptions
from .delegate import DelegateParams as DelegateParams
from .driver import SimpleDelegate as SimpleDelegate
from .engine_delegate import EngineDelegate as EngineDelegate
from .engine_delegate import EngineKernel as EngineKernel
from .engine_delegate import EngineProgram as EngineProgram
from .graph_partition_helper import FP16GraphPartitionHelper as FP16GraphPartitionHelper
from .graph_partition_helper import GraphPartitionHelper as GraphPartitionHelper
from .node_by_node import NodeByNodeKernel as NodeByNodeKernel
from .node_by_node import NodeCall as NodeCall
from .partition_model import PartitionModel as PartitionModel
from .partitioner import GraphInfo as GraphInfo
from .partitioner import NodeInfo as NodeInfo
from .partitioner import NodeSubset as NodeSubset
from .partitioner import (
    partition_graph_into_independent_node_subsets as partition_graph_into_independent_node_subsets,
)
from .placement import Placement as Placement
from .rejections import Rejection as Rejection
from .rules import PlacementRule as PlacementRule
from .simple_delegate import SimpleDelegateInterface as SimpleDelegateInterface
from .simple_delegate import SimpleDelegateKernelInterface as SimpleDelegateKernelInterface
from .tolerance import Tolerance as Tolerance
