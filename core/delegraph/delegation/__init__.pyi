from .blob_cache import BlobCache as BlobCache
from .capabilities import FEATURES as FEATURES
from .capabilities import Capabilities as Capabilities
from .capabilities import Claim as Claim
from .code_state import code_state as code_state
from .delegate import Delegate as Delegate
from .delegate import DelegateContext as DelegateContext
from .delegate import DelegateFlags as DelegateFlags
from .delegate import DelegateOptions as DelegateOptions
from .delegate import DelegateParams as DelegateParams
from .delegate import raise_if_requested as raise_if_requested
from .driver import SimpleDelegate as SimpleDelegate
from .dry_run import dry_run as dry_run
from .dry_run import is_dry_run as is_dry_run
from .engine_delegate import EngineDelegate as EngineDelegate
from .engine_delegate import EngineKernel as EngineKernel
from .engine_delegate import EngineProgram as EngineProgram
from .graph_partition_helper import FP16GraphPartitionHelper as FP16GraphPartitionHelper
from .graph_partition_helper import GraphPartitionHelper as GraphPartitionHelper
from .model_entries import ModelEntries as ModelEntries
from .node_by_node import NodeByNodeKernel as NodeByNodeKernel
from .node_by_node import NodeCall as NodeCall
from .node_traits import NodeTraits as NodeTraits
from .num_threads import limited_num_threads as limited_num_threads
from .partition_model import PartitionModel as PartitionModel
from .partitioner import GraphInfo as GraphInfo
from .partitioner import NodeInfo as NodeInfo
from .partitioner import NodeSubset as NodeSubset
from .partitioner import (
    partition_graph_into_independent_node_subsets as partition_graph_into_independent_node_subsets,
)
from .placement import Placement as Placement
from .placement import node_numbers as node_numbers
from .rejections import Rejection as Rejection
from .rules import PlacementRule as PlacementRule
from .simple_delegate import SimpleDelegateInterface as SimpleDelegateInterface
from .simple_delegate import SimpleDelegateKernelInterface as SimpleDelegateKernelInterface
from .tolerance import Tolerance as Tolerance
