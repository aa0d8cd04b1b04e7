"""A delegate for NEG that dies of 66, hangs on 77, fails on 88, and kills who asked for 55 once.

Of 44 it dies once. On 33 it leaves ``waiting-PID``, then waits while the file ``gate`` is there.
"""

from __future__ import annotations

from pathlib import Path

from delegraph.testing import graph_model, tensor
from delegraph.tools.setup import Setup

SOURCE = """
import os, pathlib, signal, time
from delegraph import NodeByNodeKernel, SimpleDelegateInterface

FOLDER = pathlib.Path(__file__).parent
SEEN = FOLDER / "seen"

class Kernel(NodeByNodeKernel):
    def prepare_node(self, call):
        def run():
            x = call.inputs[0].data
            if (x == 55).any() and not SEEN.exists():
                SEEN.touch()
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(1000)
            if (x == 44).any() and not SEEN.exists():
                SEEN.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if (x == 33).any():
                FOLDER.joinpath(f"waiting-{os.getpid()}").touch()
                while FOLDER.joinpath("gate").exists():
                    time.sleep(0.02)
            if (x == 66).any():
                os.kill(os.getpid(), signal.SIGSEGV)
            if (x == 77).any():
                time.sleep(1000)
            if (x == 88).any():
                raise ValueError("88 is too much")
            call.outputs[0].data[...] = -x
        return run

class Moody(SimpleDelegateInterface):
    def name(self):
        return "moody"
    def is_node_supported_by_delegate(self, registration, node, context):
        return True
    def create_delegate_kernel_interface(self):
        return Kernel()
"""


def moody_setup(folder: Path) -> Setup:
    """Return a model that negates ``x [1, 2], float32`` into ``y``, and its delegate."""
    tensors = {"x": tensor((1, 2)), "y": tensor((1, 2))}
    model = graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors)
    (folder / "model.tflite").write_bytes(model)
    (folder / "moody.py").write_text(SOURCE)
    return Setup(
        str(folder / "model.tflite"), delegate_files=(str(folder / "moody.py"),), threads=1
    )
