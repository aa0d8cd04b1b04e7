from .delegation.capabilities import Capabilities as Capabilities
from .delegation.capabilities import Claim as Claim
from .delegation.delegate import Delegate as Delegate
from .delegation.delegate import DelegateContext as DelegateContext
from .delegation.delegate import DelegateFlags as DelegateFlags
from .delegation.delegate import DelegateOptions as DelegateOptions
from .delegation.delegate import DelegateParams as DelegateParams
from .delegation.engine_delegate import EngineDelegate as EngineDelegate
from .delegation.engine_delegate import EngineKernel as EngineKernel
from .delegation.engine_delegate import EngineProgram as EngineProgram
from .delegation.graph_partition_helper import FP16GraphPartitionHelper as FP16GraphPartitionHelper
from .delegation.graph_partition_helper import GraphPartitionHelper as GraphPartitionHelper
from .delegation.node_by_node import NodeByNodeKernel as NodeByNodeKernel
from .delegation.node_by_node import NodeCall as NodeCall
from .delegation.partition_model import PartitionModel as PartitionModel
from .delegation.placement import Placement as Placement
from .delegation.rejections import Rejection as Rejection
from .delegation.rules import PlacementRule as PlacementRule
from .delegation.simple_delegate import SimpleDelegateInterface as SimpleDelegateInterface
from .delegation.simple_delegate import (
    SimpleDelegateKernelInterface as SimpleDelegateKernelInterface,
)
from .delegation.tolerance import Tolerance as Tolerance
from .errors import DelegraphError as DelegraphError
from .errors import ModelError as ModelError
from .operators.custom_op import CustomOp as CustomOp
from .operators.custom_op import TensorDescription as TensorDescription
from .operators.custom_op import custom_op as custom_op
from .operators.custom_op import register_custom_op as register_custom_op
from .operators.custom_op import unregister_custom_op as unregister_custom_op
from .operators.custom_options import CustomOptions as CustomOptions
from .operators.registration import Eval as Eval
from .operators.registration import InPlace as InPlace
from .operators.registration import Node as Node
from .operators.registration import OpContext as OpContext
from .operators.registration import Registration as Registration
from .operators.tensor import AllocationType as AllocationType
from .operators.tensor import Tensor as Tensor
from .plugins.engine_compiler import engine_compiler as engine_compiler
from .plugins.hookspecs import hookimpl as hookimpl
from .plugins.specs import CommandSpec as CommandSpec
from .plugins.specs import CompilerSpec as CompilerSpec
from .plugins.specs import CustomOpSpec as CustomOpSpec
from .plugins.specs import DelegateSpec as DelegateSpec
from .runtime.arguments import OpResolverType as OpResolverType
from .runtime.delegates.requested_delegates import delegate_from_file as delegate_from_file
from .runtime.delegates.requested_delegates import load_delegate as load_delegate
from .runtime.interpreter import Interpreter as Interpreter
from .runtime.official.interpreter_with_custom_ops import (
    InterpreterWithCustomOps as InterpreterWithCustomOps,
)
from .runtime.op_resolver import builtin_registration as builtin_registration
from .runtime.options import FailurePolicy as FailurePolicy
from .runtime.options import Limits as Limits
from .runtime.options import PlacementPolicy as PlacementPolicy
from .runtime.signature_runner import SignatureRunner as SignatureRunner
from .scale.predictor import Predictor as Predictor
from .schema.enums import TensorType as TensorType
from .schema.model_enums import ActivationFunctionType as ActivationFunctionType
from .schema.model_enums import BuiltinOperator as BuiltinOperator

__version__: str
