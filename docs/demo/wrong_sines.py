"""A delegate for SIN that is wrong in one of the demo's two, for ``delegraph diff --bisect``."""

import numpy as np

from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface


class Kernel(SimpleDelegateKernelInterface):
    """Kernel that computes sines, plus 1 if the output's name contains "right"."""

    def init(self, context, params):
        """Keep the nodes."""
        self.nodes = [context.get_node_and_registration(i)[0] for i in params.nodes_to_replace]

    def prepare(self, context, node):
        """Give each output the shape of its input."""
        for one in self.nodes:
            x, y = (context.tensors[i] for i in (one.inputs[0], one.outputs[0]))
            context.resize_tensor(y, x.shape)

    def eval(self, context, node):
        """Compute the nodes."""
        for one in self.nodes:
            y = context.tensors[one.outputs[0]]
            np.sin(context.tensors[one.inputs[0]].data, out=y.data)
            y.data[...] += "right" in y.name


class Sines(SimpleDelegateInterface):
    """Delegate that takes every SIN."""

    def name(self):
        """Return the delegate's name for placements."""
        return "sines"

    def is_node_supported_by_delegate(self, registration, node, context):
        """Whether a node is a SIN."""
        return registration.name == "SIN"

    def create_delegate_kernel_interface(self):
        """Return a kernel for a partition."""
        return Kernel()
