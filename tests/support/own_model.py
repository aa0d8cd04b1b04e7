"""A kernel that runs its partition as a model of its own, so results are the same bit for bit."""

from __future__ import annotations

import numpy as np

from delegraph import (
    DelegateContext,
    DelegateParams,
    Interpreter,
    Node,
    SimpleDelegateKernelInterface,
)


class OwnModelKernel(SimpleDelegateKernelInterface):
    """Kernel whose engine is an interpreter of the partition's model."""

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self.engine = Interpreter(model_content=params.as_model())
        self.inputs = [i for i in params.input_tensors if not context.tensors[i].is_constant]
        self.outputs = list(params.output_tensors)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        for index, entry in zip(self.inputs, self.engine.get_input_details(), strict=True):
            self.engine.resize_tensor_input(entry["index"], context.tensors[index].shape)
        self.engine.allocate_tensors()
        for index, entry in zip(self.outputs, self.engine.get_output_details(), strict=True):
            context.resize_tensor(context.tensors[index], entry["shape"])

    def eval(self, context: DelegateContext, node: Node) -> None:
        for index, entry in zip(self.inputs, self.engine.get_input_details(), strict=True):
            self.engine.set_tensor(entry["index"], context.tensors[index].data)
        self.engine.invoke()
        for index, entry in zip(self.outputs, self.engine.get_output_details(), strict=True):
            np.copyto(context.tensors[index].data, self.engine.get_tensor(entry["index"]))

    def close(self) -> None:
        self.engine.close()
