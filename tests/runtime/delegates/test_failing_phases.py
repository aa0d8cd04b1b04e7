"""A delegate that fails at whatever phase leaves a usable interpreter and is named in the error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph import DelegateSpec, Interpreter
from delegraph.errors import DelegateError, DelegateNodeError, PluginLoadError, PluginOptionError
from delegraph.plugins import PluginSet
from support.by_name import ByName, X, Y, run, sines
from support.fake_distributions import write_distribution
from support.running import result_of

PLUGIN = """\
from dataclasses import dataclass
from delegraph import DelegateSpec, hookimpl

@dataclass(frozen=True)
class Options:
    at: str = "never"

def _load():
    from fake_failing_heavy import Failing
    return Failing

def _load_broken():
    import fake_that_is_not_there

@hookimpl
def delegraph_delegates():
    return [
        DelegateSpec("failing", "fails where it is told to", _load, Options),
        DelegateSpec("not_importable", "its own import fails", _load_broken),
    ]
"""

HEAVY = """\
import numpy as np
from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface

class Failing(SimpleDelegateInterface):
    def __init__(self, options):
        self.at = options.at
        self.reach("constructor")

    def reach(self, phase):
        if phase == self.at:
            raise RuntimeError(f"boom at {phase}")

    def name(self):
        self.reach("name")
        return "failing"

    def flags(self):
        self.reach("flags")
        return super().flags()

    def delegate_options(self):
        self.reach("delegate_options")
        return super().delegate_options()

    def initialize(self, context):
        self.reach("initialize")

    def is_node_supported_by_delegate(self, registration, node, context):
        self.reach("claim")
        return registration.name == "ADD"

    def create_delegate_kernel_interface(self):
        self.reach("create kernel")
        return Kernel(self)

    def copy_from_buffer_handle(self, context, tensor):
        self.reach("copy from")
        np.copyto(tensor.data, self.buffer)

    def copy_to_buffer_handle(self, context, tensor):
        self.reach("copy to")

    def free_buffer_handle(self, context, handle):
        self.reach("free")

class Kernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate):
        self.delegate = delegate

    def init(self, context, params):
        self.delegate.reach("init")
        self.nodes = [context.get_node_and_registration(i)[0] for i in params.nodes_to_replace]

    def prepare(self, context, node):
        self.delegate.reach("prepare")
        owner = context.tensors[node.outputs[0]].delegate
        context.set_buffer_handle(context.tensors[node.outputs[0]], 1, owner)
        if self.delegate.at == "copy to":
            context.set_buffer_handle(context.tensors[0], 2, owner)

    def eval(self, context, node):
        self.delegate.reach("eval")
        values = {}
        for step in self.nodes:
            a, b = (values.get(i, context.tensors[i].data) for i in step.inputs)
            values[step.outputs[0]] = a + b
        self.delegate.buffer = values[node.outputs[0]]
        context.tensors[node.outputs[0]].data_is_stale = True
"""

WHILE_ASKING = {
    "import": ("not_importable", PluginLoadError, r"'not_importable' could not be made.*fake-fail"),
    "unknown option": ("failing:to=x", PluginOptionError, "'failing' has no option 'to'.*at"),
    "constructor": ("failing:at=constructor", PluginLoadError, "'failing' could not.*boom at con"),
}

WHILE_APPLYING = {
    "name": ("Failing|SimpleDelegate", "name"),
    "flags": ("'failing'", "flags"),
    "delegate_options": ("'failing'", "delegate_options"),
    "initialize": ("'failing'.*initialize failed", "initialize"),
    "claim": (r"'failing'.*claim failed.*node 5 \(by_name\)", "claim"),
    "create kernel": ("'failing'.*init failed", "create kernel"),
    "init": (r"'failing'.*init failed: .*nodes \[1, 4\]", "init"),
    "prepare": (r"'failing'.*prepare failed.*Node number \d \(failing\)", "prepare"),
}

WHILE_RUNNING = {
    "eval": (r"Node number \d \(failing\) failed to invoke: RuntimeError: boom at eval", "eval"),
    "copy from": (r"'failing' failed to copy .* from its buffer 1: RuntimeError: boom", "copy"),
    "copy to": (r"'failing' failed to copy .* to its buffer 2: RuntimeError: boom", "copy"),
}


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with a delegate that fails on demand."""
    monkeypatch.syspath_prepend(tmp_path)
    sources = {"fake_failing": PLUGIN, "fake_failing_heavy": HEAVY}
    write_distribution(tmp_path, "fake-failing", sources, {"failing": "fake_failing"})
    plugins = PluginSet()
    monkeypatch.setattr(
        "delegraph.runtime.delegates.requested_delegates.installed", lambda: plugins
    )


@pytest.fixture
def interpreter() -> Interpreter:
    """One that is allocated, has a delegate, and has run."""
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    run(interpreter)
    return interpreter


def assert_works_on(interpreter: Interpreter) -> None:
    """Assert that the next invoke is right, without another allocation."""
    np.testing.assert_allclose(result_of(interpreter), Y, rtol=1e-6)
    assert interpreter.placement.delegates == ("by_name",)


@pytest.mark.parametrize("phase", WHILE_ASKING)
def test_before_it_is_applied(phase: str, interpreter: Interpreter) -> None:
    address, error, message = WHILE_ASKING[phase]
    with pytest.raises(error, match=message):
        interpreter.modify_graph_with_delegate(address)
    assert_works_on(interpreter)


@pytest.mark.parametrize("phase", WHILE_APPLYING)
def test_while_it_is_applied(phase: str, interpreter: Interpreter) -> None:
    message, cause = WHILE_APPLYING[phase]
    before = interpreter.placement
    with pytest.raises(DelegateError, match=f"{message}.*boom at {cause}") as caught:
        interpreter.modify_graph_with_delegate(f"failing:at={phase}")
    assert isinstance(caught.value.__cause__, Exception)
    assert interpreter.placement == before
    assert_works_on(interpreter)


@pytest.mark.parametrize("phase", WHILE_RUNNING)
def test_while_it_runs(phase: str, interpreter: Interpreter) -> None:
    message, name = WHILE_RUNNING[phase]
    interpreter.modify_graph_with_delegate(f"failing:at={phase}")
    with pytest.raises(DelegateNodeError, match=message) as caught:
        run(interpreter)
    assert (caught.value.delegate, caught.value.phase) == ("failing", name)
    interpreter.remove_all_delegates()
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_when_it_frees_its_buffers_the_rest_goes_on(
    interpreter: Interpreter, caplog: pytest.LogCaptureFixture
) -> None:
    interpreter.modify_graph_with_delegate("failing:at=free")
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
    interpreter.remove_all_delegates()
    assert "'failing' failed to free its buffer 1: RuntimeError: boom at free" in caplog.text
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_one_that_never_fails_works() -> None:
    """Else the tests above would show nothing."""
    interpreter = Interpreter(model_content=sines(), delegates=["failing"])
    np.testing.assert_allclose(run(interpreter, X), Y, rtol=1e-6)
    assert interpreter.placement.partitions
    assert isinstance(PluginSet().find("failing").spec, DelegateSpec)
