"""The source of a plugin whose kernels keep what they decide in the model file."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.chosen_plugins import use_plugins_of
from support.fake_distributions import write_distribution

SOURCE = '''\
"""A delegate that computes SIN, after a decision that takes long."""

from dataclasses import dataclass

import numpy as np

from delegraph import DelegateSpec, hookimpl
from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface

VERSION = "1"
decided = []


@dataclass(frozen=True)
class KeepingOptions:
    cpu: str = "here"


class KeepingDelegate(SimpleDelegateInterface):
    def __init__(self, options):
        self.options = options

    def name(self):
        return "keeping"

    def is_node_supported_by_delegate(self, registration, node, context):
        return registration.name == "SIN"

    def create_delegate_kernel_interface(self):
        return KeepingKernel(self.options)


class KeepingKernel(SimpleDelegateKernelInterface):
    def __init__(self, options):
        self.options = options

    def init(self, context, params):
        key = f"{context.model_digest} {params.nodes_to_replace} {self.options.cpu}"
        entries = context.model_entries("keeping")
        self.decision = entries.read(VERSION, key)
        if self.decision is None:
            decided.append(self.options.cpu)
            self.decision = self.options.cpu.encode()
            entries.keep(VERSION, key, self.decision)

    def prepare(self, context, node):
        assert self.decision.decode() == self.options.cpu

    def eval(self, context, node):
        for x, y in zip(node.inputs, node.outputs, strict=True):
            np.sin(context.tensors[x].data, out=context.tensors[y].data)


@hookimpl
def delegraph_delegates():
    load = lambda: KeepingDelegate
    return [DelegateSpec("keeping", "sines", load, KeepingOptions, load_compiling=load)]
'''


def install_keeping(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with distribution ``fake-keeping``, which offers delegate ``keeping``."""
    write_distribution(
        folder, "fake-keeping", {"fake_keeping": SOURCE}, {"keeping": "fake_keeping"}
    )
    use_plugins_of(monkeypatch, folder)
