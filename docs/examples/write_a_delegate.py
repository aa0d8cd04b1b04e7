"""Write a delegate: it takes the SIN nodes of f(x) = sin(x) + x + sin(2x)."""

from pathlib import Path

import numpy as np

from delegraph import Interpreter, Rejection, SimpleDelegateInterface, SimpleDelegateKernelInterface


class SinDelegate(SimpleDelegateInterface):
    def name(self):
        return "my_sin"

    def is_node_supported_by_delegate(self, registration, node, context):
        return registration.name == "SIN" or Rejection("op", registration.name, "SIN")

    def create_delegate_kernel_interface(self):
        return SinKernel()


class SinKernel(SimpleDelegateKernelInterface):
    def init(self, context, params):
        self.nodes = [context.get_node_and_registration(i)[0] for i in params.nodes_to_replace]

    def prepare(self, context, node): ...

    def eval(self, context, node):
        values = {}  # of tensors inside the partition
        for step in self.nodes:
            (x,), (y,) = step.inputs, step.outputs
            values[y] = np.sin(values.get(x, context.tensors[x].data))
        for y in node.outputs:
            context.tensors[y].data[...] = values[y]


MODEL = Path(__file__).parents[1] / "demo" / "models" / "sines.tflite"
with Interpreter(MODEL, delegates=[SinDelegate()]) as interpreter:
    f = interpreter.get_signature_runner()
    print("f(2) =", f(x=np.float32([2]))["y"][0], "by", interpreter.placement)
