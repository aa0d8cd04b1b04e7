from .delegate_conformance import DelegateConformance as DelegateConformance
from .one_op import TensorDef as TensorDef
from .one_op import constant as constant
from .one_op import one_op_model as one_op_model
from .one_op import tensor as tensor
from .outputs import delegraph_outputs as delegraph_outputs
from .several_ops import graph_model as graph_model
from .several_ops import subgraphs_model as subgraphs_model
