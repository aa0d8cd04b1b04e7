"""The source of a plugin whose engine compiles partitions: its blob is what the engine runs."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from support.chosen_plugins import use_plugins_of
from support.fake_distributions import write_distribution

SOURCE = '''\
"""An engine whose compiled form is a header with an option, and the partition as a model."""

from dataclasses import dataclass

from delegraph import CompilerSpec, DelegateSpec, Interpreter, Rejection, hookimpl
from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface
from delegraph.errors import PartitionRejected

VERSION = {version!r}
LEFT = {left!r}


@dataclass(frozen=True)
class EngineOptions:
    level: int = 1
    least: int = 1


class EngineDelegate(SimpleDelegateInterface):
    def __init__(self, options):
        self.options = options

    def name(self):
        return {delegate!r}

    def is_node_supported_by_delegate(self, registration, node, context):
        if registration.name in LEFT or registration.custom_name:
            return Rejection("op", actual=registration.name)
        return True

    def create_delegate_kernel_interface(self):
        raise RuntimeError("the engine is not there when a partition is compiled")


class EngineKernel(SimpleDelegateKernelInterface):
    def __init__(self, blob, params):
        assert blob[:5] == b"LEVEL", blob[:5]
        self.params = params
        self.engine = Interpreter(model_content=blob[6:])
        self.engine.allocate_tensors()

    def init(self, context, params):
        raise RuntimeError("init is not called")

    def prepare(self, context, node):
        assert node.inputs == self.params.input_tensors
        assert node.outputs == self.params.output_tensors

    def eval(self, context, node):
        read = [i for i in node.inputs if not context.tensors[i].is_variable]
        for detail, index in zip(self.engine.get_input_details(), read, strict=True):
            self.engine.set_tensor(detail["index"], context.tensors[index].data)
        self.engine.invoke()
        for detail, index in zip(self.engine.get_output_details(), node.outputs, strict=True):
            context.tensors[index].data[...] = self.engine.get_tensor(detail["index"])

    def close(self):
        self.engine.close()


def _compile(model, options):
    if len(model.nodes) < options.least:
        raise PartitionRejected("it has too few nodes", constraint="small")
    return b"LEVEL%d" % options.level + model.content


def _load_compiled(blob, context, params):
    return EngineKernel(blob, params)


@hookimpl
def delegraph_delegates():
    return [DelegateSpec({delegate!r}, "an engine", lambda: EngineDelegate, EngineOptions)]


@hookimpl
def delegraph_compilers():
    version = None if VERSION is None else lambda: VERSION
    return [CompilerSpec({delegate!r}, _compile, _load_compiled, version)]
'''


def compiling_plugin(
    delegate: str = "engine", *, version: str | None = None, left: tuple[str, ...] = ()
) -> str:
    """Return the source of a plugin with one delegate that compiles ahead of time.

    Args:
        delegate: its name.
        version: of its blobs; None for the distribution's.
        left: operators that it does not take, by name.
    """
    return SOURCE.format(delegate=delegate, version=version, left=left)


def install_compiler(
    folder: Path, monkeypatch: pytest.MonkeyPatch, delegate: str = "engine", **plugin: Any
) -> None:
    """Run the test with distribution ``fake-DELEGATE`` installed, in the place of an earlier one.

    Args:
        folder: where to.
        monkeypatch: takes it out after the test.
        delegate: the delegate it offers.
        plugin: see :func:`compiling_plugin`; ``release`` is the version of the distribution.
    """
    release = plugin.pop("release", "1.0")
    uninstall_compiler(folder, monkeypatch, delegate)
    module = f"fake_{delegate}"
    source = compiling_plugin(delegate, **plugin)
    entry_points = {delegate: module}
    write_distribution(folder, f"fake-{delegate}", {module: source}, entry_points, release)
    use_plugins_of(monkeypatch, folder)


def change_compiler(
    folder: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, delegate: str = "engine"
) -> None:
    """Replace text in the source of the plugin for the rest of the test."""
    module = folder / f"fake_{delegate}.py"
    assert old in module.read_text()
    module.write_text(module.read_text().replace(old, new))
    _import_again(folder, monkeypatch, delegate)


def uninstall_compiler(
    folder: Path, monkeypatch: pytest.MonkeyPatch, delegate: str = "engine"
) -> None:
    """Remove that distribution and the plugin's module."""
    for info in folder.glob(f"fake_{delegate}-*.dist-info"):
        shutil.rmtree(info)
    _import_again(folder, monkeypatch, delegate)


def _import_again(folder: Path, monkeypatch: pytest.MonkeyPatch, delegate: str) -> None:
    monkeypatch.delitem(sys.modules, f"fake_{delegate}", raising=False)
    bytecode = importlib.util.cache_from_source(str(folder / f"fake_{delegate}.py"))
    Path(bytecode).unlink(missing_ok=True)  # it knows only the second of a change
    importlib.invalidate_caches()
    use_plugins_of(monkeypatch, folder)
