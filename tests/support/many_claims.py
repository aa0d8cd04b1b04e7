"""A delegate that claims much: its engine is Delegraph's own kernels, run on whole partitions."""

from __future__ import annotations

import numpy as np

from delegraph import (
    Capabilities,
    Claim,
    Interpreter,
    OpResolverType,
    SimpleDelegateInterface,
)
from delegraph.schema import read_model, write_model
from delegraph.testing.registered_operators import REGISTERED_OPERATORS
from support.own_model import OwnModelKernel

TYPES = ("FLOAT32", "INT8", "BOOL")
OPERATORS = sorted(REGISTERED_OPERATORS)[::5]
CAPABILITIES = Capabilities(
    [Claim(op, [type, "INT32"], "broadcast") for op in OPERATORS for type in TYPES]
)


class EngineKernel(OwnModelKernel):
    """Kernel that runs the partition's own model; ``changed`` may replace that model."""

    compiled = 0

    def init(self, context, params):
        EngineKernel.compiled += 1
        model = params.partition_model()
        self.inputs, self.outputs = model.inputs, model.outputs
        self.engine = Interpreter(
            model_content=self.changed(model.content),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        self.engine.allocate_tensors()

    def changed(self, content):
        return content

    def prepare(self, context, node):
        pass


class EngineDelegate(SimpleDelegateInterface):
    """Delegate that takes the nodes covered by its claims."""

    kernel: type[EngineKernel] = EngineKernel
    claims = CAPABILITIES

    def name(self):
        return "engine"

    def capabilities(self):
        return self.claims

    def is_node_supported_by_delegate(self, registration, node, context):
        fits = self.claims.check(registration, node, context)
        return fits and self.claims.check_features(registration, node, context)

    def create_delegate_kernel_interface(self):
        return self.kernel()


class KeepsTheAxis(EngineKernel):
    """Faulty kernel: moves a TRANSPOSE after its CUMSUM without changing the axis."""

    def changed(self, content):
        record = read_model(np.frombuffer(content, np.uint8))
        (graph,) = record.subgraphs
        codes = [code.builtin_code.name for code in record.operator_codes]
        names = [codes[operator.opcode_index] for operator in graph.operators]
        made_by = {o.outputs[0]: i for i, o in enumerate(graph.operators)}
        buffers = list(record.buffers)
        for name, operator in zip(names, graph.operators, strict=True):
            maker = made_by.get(operator.inputs[0])
            if name == "CUMSUM" and maker is not None and names[maker] == "TRANSPOSE":
                order = _values(record, graph.operators[maker].inputs[1])
                buffer = graph.tensors[operator.inputs[1]].buffer
                axis = order[_values(record, operator.inputs[1])].astype(np.int32)
                buffers[buffer] = buffers[buffer].replace(data=axis.view(np.uint8).reshape(-1))
        return write_model(record.replace(buffers=tuple(buffers)))


def _values(record, tensor):
    (graph,) = record.subgraphs
    return np.asarray(record.buffers[graph.tensors[tensor].buffer].data).view(np.int32)


class MovesTranspositions(EngineDelegate):
    kernel = KeepsTheAxis
    claims = Capabilities([Claim(["ABS", "CUMSUM", "TRANSPOSE"], ["FLOAT32", "INT32"])])
