"""A delegate file, for both hosts: each node is computed by Delegraph's kernels, some wrongly.

A node is called by the number of its first output's name (:func:`number`), as positions change
when a model is cut.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import time
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from delegraph import (
    DelegateFlags,
    Interpreter,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.partition_model import partition_model


def number(name: str) -> int:
    """Return the number by which the options name the node with that first output."""
    return zlib.crc32(name.encode())


@dataclass(frozen=True)
class Options:
    """Node numbers for each fault, several joined by ``+``.

    Attributes:
        wrong: whose results are off.
        together: whose results are off where the delegate has them all.
        crash: that end the process.
        hang: that never end.
        raises: that raise.
        refuses: that raise when the delegate gets them.
        crowd: how many nodes make each result wrong; fewer, and all are right.
    """

    wrong: str = ""
    together: str = ""
    crash: str = ""
    hang: str = ""
    raises: str = ""
    refuses: str = ""
    crowd: int = 10**6

    def meant(self, fault: str) -> set[int]:
        return {int(n) for n in getattr(self, fault).split("+") if n}


class FaultyNodes(SimpleDelegateInterface):
    def __init__(self, options: Options) -> None:
        self.options = options
        self.taken: set[int] = set()

    def name(self) -> str:
        return "faulty"

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> bool:
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return FaultyKernel(self)

    def is_wrong(self, node: int) -> bool:
        together = self.options.meant("together")
        return (
            node in self.options.meant("wrong")
            or (node in together and together <= self.taken)
            or len(self.taken) >= self.options.crowd
        )


class FaultyKernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: FaultyNodes) -> None:
        self.delegate = delegate

    def init(self, context: Any, params: Any) -> None:
        self.params = params
        self.nodes = [_One(context, index) for index in params.nodes_to_replace]
        self.delegate.taken |= {node.number for node in self.nodes}
        if {node.number for node in self.nodes} & self.delegate.options.meant("refuses"):
            raise OSError("no such instruction")

    def prepare(self, context: Any, node: Any) -> None:
        for index in self.params.output_tensors:
            context.resize_tensor(context.tensors[index], context.tensors[index].shape)

    def eval(self, context: Any, node: Any) -> None:
        values: dict[int, Any] = {}
        for one in self.nodes:
            self.fail(one.number)
            for index, array in one.compute(context, values).items():
                is_wrong = self.delegate.is_wrong(one.number)
                values[index] = _spoilt(array) if is_wrong else array
        for index in self.params.output_tensors:
            np.copyto(context.tensors[index].data, values[index])

    def fail(self, node: int) -> None:
        options = self.delegate.options
        if node in options.meant("crash"):
            faulthandler.disable()  # whose report would stand among those of the tests
            os.kill(os.getpid(), signal.SIGSEGV)
            time.sleep(60)
        if node in options.meant("hang"):
            ctypes.PyDLL(None).pause()  # keeps Python's lock, as a loop in C would
        if node in options.meant("raises"):
            raise OSError("device lost")


def _spoilt(array: Any) -> Any:
    wrong = np.array(array)
    wrong.reshape(-1)[-1] += np.asarray(50, wrong.dtype)
    return wrong


@dataclass(frozen=True)
class _Alone:
    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]


class _One:
    """Model of a single node."""

    def __init__(self, context: Any, index: int) -> None:
        node, _ = context.get_node_and_registration(index)
        tensors = context.tensors
        fed = dict.fromkeys(i for i in node.inputs if i >= 0 and not tensors[i].is_constant)
        self.inputs, self.outputs = tuple(fed), tuple(node.outputs)
        self.number = number(tensors[node.outputs[0]].name)
        alone = _Alone((index,), self.inputs, self.outputs)
        model = partition_model(context, alone).content
        self.interpreter = Interpreter(model_content=model, delegates=())
        self.interpreter.allocate_tensors()

    def compute(self, context: Any, values: dict[int, Any]) -> dict[int, Any]:
        for entry, index in zip(self.interpreter.get_input_details(), self.inputs, strict=True):
            given = values.get(index)
            array = context.tensors[index].data if given is None else given
            self.interpreter.set_tensor(entry["index"], array)
        self.interpreter.invoke()
        found = self.interpreter.get_output_details()
        return {
            i: self.interpreter.get_tensor(d["index"])
            for i, d in zip(self.outputs, found, strict=True)
        }


delegate = FaultyNodes
