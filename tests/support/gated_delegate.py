"""A delegate for NEG that waits while a file is there, fails on 88, and dies of 66."""

from __future__ import annotations

from pathlib import Path

from delegraph.testing import graph_model, tensor

SOURCE = """
import os, pathlib, signal, time
from delegraph import NodeByNodeKernel, SimpleDelegateInterface

GATE = pathlib.Path(__file__).with_name("closed")


class Kernel(NodeByNodeKernel):
    def prepare_node(self, call):
        def run():
            while GATE.exists():
                time.sleep(0.01)
            x = call.inputs[0].data
            if (x == 66).any():
                os.kill(os.getpid(), signal.SIGKILL)
            if (x == 88).any():
                raise ValueError("88 is too much")
            call.outputs[0].data[...] = -x
        return run

class Gated(SimpleDelegateInterface):
    def name(self):
        return "gated"
    def is_node_supported_by_delegate(self, registration, node, context):
        return True
    def create_delegate_kernel_interface(self):
        return Kernel()
"""


class GatedModel:
    """Model that negates ``x [1, 2], float32`` into ``y``, in a folder with its delegate.

    Attributes:
        words: of a command line that runs it.
        folder: of its files.
        gate: nothing is computed while this file exists.
    """

    def __init__(self, folder: Path) -> None:
        tensors = {"x": tensor((1, 2)), "y": tensor((1, 2))}
        model = graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors)
        (folder / "neg.tflite").write_bytes(model)
        (folder / "gated.py").write_text(SOURCE)
        self.words = [str(folder / "neg.tflite"), "--delegate-file", str(folder / "gated.py")]
        self.folder = folder
        self.gate = folder / "closed"
