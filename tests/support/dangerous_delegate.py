"""A delegate file that takes ADD and goes wrong where its options say: it ends its process, say."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from delegraph import (
    DelegateFlags,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)


@dataclass(frozen=True)
class Options:
    """Where the delegate fails, and how.

    Attributes:
        at: ``load``, ``name``, ``claim``, ``check``, ``init``, ``prepare``, ``eval`` or ``close``.
        how: ``abort``, ``fault``, ``exit``, ``hang``, ``raise``; or ``wait``, which hangs where a
            signal can end it.
        journal: a file that gets a line for each time it goes wrong, the process in it.
        times: after so many times it goes right; 0: never.
        dynamic: whether it takes any shapes.
        opens: whether it leaves the shapes of its outputs open until it computes them.
        refuses: whether it refuses each partition as a whole.
        noise: whether it prints to standard output.
    """

    at: str = "never"
    how: str = "abort"
    journal: str = ""
    times: int = 0
    dynamic: bool = False
    opens: bool = False
    refuses: bool = False
    noise: bool = False


class Dangerous(SimpleDelegateInterface):
    def __init__(self, options: Options) -> None:
        self.options = options
        self.reach("load")

    def reach(self, where: str) -> None:
        options = self.options
        if options.noise:
            print(f"noise at {where}")
            os.write(1, b"noise of C\n")
        if where != options.at:
            return
        if options.journal:
            with Path(options.journal).open("a") as journal:
                journal.write(f"{os.getpid()}\n")
            if options.times and len(Path(options.journal).read_text().split()) > options.times:
                return
        go_wrong(options.how)

    def name(self) -> str:
        self.reach("name")
        return "dangerous"

    def note(self) -> str:
        return "mind the gap"

    def flags(self) -> DelegateFlags:
        is_dynamic = self.options.dynamic or self.options.opens
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS if is_dynamic else DelegateFlags.NONE

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> Any:
        self.reach("claim")
        if registration.name == "ADD":
            return True
        return Rejection("op", actual=registration.name, expected="ADD", tensor=node.inputs[0])

    def check_partition(self, context: Any, params: Any) -> Any:
        self.reach("check")
        return not self.options.refuses or Rejection("pair", "two at a time are too many")

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return Kernel(self)


class Kernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Dangerous) -> None:
        self.delegate = delegate

    def init(self, context: Any, params: Any) -> None:
        self.delegate.reach("init")
        self.nodes = [context.get_node_and_registration(i)[0] for i in params.nodes_to_replace]

    def prepare(self, context: Any, node: Any) -> None:
        self.delegate.reach("prepare")
        shapes = {i: context.tensors[i].shape for i in node.inputs}
        for inner in self.nodes:
            both = [shapes.get(i, context.tensors[i].shape) for i in inner.inputs]
            shapes[inner.outputs[0]] = np.broadcast_shapes(*both)
        for index in node.outputs:
            if self.delegate.options.opens:
                context.set_dynamic(context.tensors[index])
            else:
                context.resize_tensor(context.tensors[index], shapes[index])

    def eval(self, context: Any, node: Any) -> None:
        self.delegate.reach("eval")
        values = {i: context.tensors[i].data for i in node.inputs}
        for inner in self.nodes:
            x, y = (values.get(i, context.tensors[i].data) for i in inner.inputs)
            values[inner.outputs[0]] = x + y
        for index in node.outputs:
            if self.delegate.options.opens:
                context.resize_tensor(context.tensors[index], values[index].shape)
            np.copyto(context.tensors[index].data, values[index])

    def close(self) -> None:
        self.delegate.reach("close")


def go_wrong(how: str) -> None:
    """Fail as *how* says: end this process, hang, or raise."""
    faulthandler.disable()  # whose report would stand among those of the tests
    if how == "abort":
        os.abort()
    if how == "fault":
        ctypes.string_at(0)  # reads where nothing is
    if how == "exit":
        os._exit(3)
    if how == "leave":
        sys.exit(4)
    if how == "hang":
        ctypes.PyDLL(None).pause()  # keeps Python's lock, as a loop in C would
    if how == "wait":
        time.sleep(3600)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise OSError("device lost")


delegate = Dangerous
