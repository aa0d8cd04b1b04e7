"""A sound delegate for ADD and MUL, and others with one fault each."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Future
from typing import Any, ClassVar

import numpy as np

from delegraph import (
    Capabilities,
    Claim,
    DelegateFlags,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    TensorType,
)
from delegraph.operators.asynchronous import DONE
from delegraph.schema.enums import ActivationFunctionType as Activation
from delegraph.testing.conformance import ahead_of_time, contract

COMPUTE = {"ADD": np.add, "MUL": np.multiply}
RANGES = {
    Activation.NONE: (None, None),
    Activation.RELU: (0, None),
    Activation.RELU_N1_TO_1: (-1, 1),
    Activation.RELU6: (0, 6),
}
CAPABILITIES = Capabilities(
    [Claim(["ADD", "MUL"], "FLOAT32", "activation", "broadcast"), Claim("ADD", "INT32")]
)
MAY_BE_SKIPPED = (
    contract.options_are_validated,
    contract.dynamic_shapes_are_followed,
    contract.eval_async_gives_what_eval_does,
    ahead_of_time.compiled_files_give_the_same,
    ahead_of_time.other_versions_are_refused,
    ahead_of_time.damaged_blobs_are_errors,
)
"""Checks of what not every sound delegate has."""


class SoundKernel(SimpleDelegateKernelInterface):
    """Kernel without a fault that computes node by node; subclasses add one fault."""

    def init(self, context, params):
        self.nodes = [context.get_node_and_registration(i) for i in params.nodes_to_replace]
        self.borders = set(params.output_tensors)

    def prepare(self, context, node):
        self.inner = {}
        for step, _ in self.nodes:
            a, b = (context.tensors[i] for i in step.inputs)
            y = context.tensors[step.outputs[0]]
            context.resize_tensor(y, np.broadcast_shapes(a.shape, b.shape))
            if y.index not in self.borders:
                self.inner[y.index] = np.empty(y.shape, y.dtype)

    def eval(self, context, node):
        for step, registration in self.nodes:
            a, b = (self.values(context.tensors[i]) for i in step.inputs)
            self.write(
                self.values(context.tensors[step.outputs[0]]), self.result(step, registration, a, b)
            )

    def values(self, tensor):
        return self.inner.get(tensor.index, tensor.data)

    def result(self, step, registration, a, b):
        y = COMPUTE[registration.name](a, b)
        low, high = RANGES[step.options.fused_activation_function]
        return y if low is None and high is None else np.clip(y, low, high)

    def write(self, target, y):
        target[...] = y


class SoundDelegate(SimpleDelegateInterface):
    """Delegate without a fault that takes what its claims cover."""

    kernel: type[SimpleDelegateKernelInterface] = SoundKernel
    claims = CAPABILITIES

    def name(self):
        return "careful"

    def capabilities(self):
        return self.claims

    def flags(self):
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def is_node_supported_by_delegate(self, registration, node, context) -> Any:
        answer = self.claims.check(registration, node, context)
        if not answer:
            return answer
        if node.options.fused_activation_function not in RANGES:
            return Rejection("activation")
        tensors = [context.tensors[i] for i in (*node.inputs, *node.outputs)]
        a, b = tensors[:2]
        is_float = a.type == TensorType.FLOAT32
        plain = node.options.fused_activation_function == Activation.NONE and a.shape == b.shape
        if not is_float and not plain:
            return Rejection("integer", "integers are added without broadcasting nor activation")
        if any(len(t.shape) > 4 or 0 in t.shape for t in tensors) or () in (a.shape, b.shape):
            return Rejection("rank")
        return True

    def create_delegate_kernel_interface(self):
        return self.kernel()


class StaticDelegate(SoundDelegate):
    """Delegate without a fault that is applied again after each resize."""

    def flags(self):
        return DelegateFlags.NONE


def with_kernel(kernel: type[SimpleDelegateKernelInterface]) -> type[SoundDelegate]:
    """Return the sound delegate with another kernel."""
    return type(f"With{kernel.__name__}", (SoundDelegate,), {"kernel": kernel})


# -- numbers -----------------------------------------------------------------------------------


class WrongIntegers(SoundKernel):
    def result(self, step, registration, a, b):
        y = super().result(step, registration, a, b)
        return y + 1 if y.dtype == np.int32 else y


class ReturnsItsResult(SoundKernel):
    def eval(self, context, node):
        ((step, registration),) = self.nodes
        a, b = (self.values(context.tensors[i]) for i in step.inputs)
        return self.result(step, registration, a, b)


class IgnoresActivation(SoundKernel):
    def result(self, step, registration, a, b):
        return COMPUTE[registration.name](a, b)


class RunsOnlyTheLastNodes(SoundKernel):
    def eval(self, context, node):
        self.nodes, nodes = self.nodes[-2:], self.nodes
        super().eval(context, node)
        self.nodes = nodes


class ForgetsOutputsInside(SoundKernel):
    """Fault: does not write an output of the partition that its own nodes also read."""

    def init(self, context, params):
        super().init(context, params)
        self.borders -= {i for step, _ in self.nodes for i in step.inputs}


# -- contract ----------------------------------------------------------------------------------


class KeepsViews(SoundKernel):
    def prepare(self, context, node):
        super().prepare(context, node)
        self.kept = {}

    def values(self, tensor):
        return self.kept.setdefault(tensor.index, super().values(tensor))


class PreparesTwiceDifferently(SoundKernel):
    times = 0

    def prepare(self, context, node):
        super().prepare(context, node)
        self.times += 1

    def write(self, target, y):
        target[...] = y + y.dtype.type(self.times - 1)


class PreparesOnce(SoundKernel):
    def prepare(self, context, node):
        super().prepare(context, node)
        if not hasattr(self, "scratch"):
            self.scratch = {
                s.outputs[0]: context.tensors[s.outputs[0]].shape for s, _ in self.nodes
            }

    def write(self, target, y):
        shape = next(iter(self.scratch.values()))
        target[...] = y if y.shape == shape else 0


class RunsClosedPrograms(SoundKernel):
    """Fault: runs a cached program of an earlier shape after closing it."""

    def prepare(self, context, node):
        super().prepare(context, node)
        self.shape = context.tensors[node.inputs[0]].shape
        self.seen = [*getattr(self, "seen", []), self.shape]

    def write(self, target, y):
        is_closed = self.shape in self.seen[:-5]
        target[...] = 0 if is_closed else y


class WritesItsInput(SoundKernel):
    def result(self, step, registration, a, b):
        y = super().result(step, registration, a, b)
        if a.flags.writeable and y.shape == a.shape:
            a[...] = y
        return y


class ReliesOnZeroedMemory(SoundKernel):
    def write(self, target, y):
        np.copyto(target, y, where=np.asarray(y != 0))


class Accumulates(SoundKernel):
    last: Any = 0

    def write(self, target, y):
        target[...] = y + self.last
        self.last = y


class RemembersInputs(SoundKernel):
    last: Any = None

    def result(self, step, registration, a, b):
        y = super().result(step, registration, a, b)
        changed = self.last is not None and not np.array_equal(self.last, a)
        self.last = a.copy()
        return y + y.dtype.type(1) if changed else y


class StartsRightly(SoundKernel):
    def eval_async(self, context, node):
        result = Future()
        self.eval(context, node)
        result.set_result(None)
        return result


class AnswersTooSoon(SoundKernel):
    def eval_async(self, context, node):
        return DONE


class ReturnsNoEvent(SoundKernel):
    def eval_async(self, context, node):
        self.eval(context, node)


class SharesScratch(SoundKernel):
    """Fault: all kernels of the process share one scratch array."""

    scratch: Any = None

    def prepare(self, context, node):
        super().prepare(context, node)
        shapes = [context.tensors[s.outputs[0]].shape for s, _ in self.nodes]
        SharesScratch.scratch = np.empty(shapes[-1], np.float64)

    def write(self, target, y):
        SharesScratch.scratch[...] = y
        target[...] = SharesScratch.scratch


class RacesForScratch(SoundKernel):
    """Fault: all kernels share scratch arrays by shape, which two threads may use at once."""

    scratch: ClassVar[dict[Any, Any]] = {}

    def result(self, step, registration, a, b):
        y = super().result(step, registration, a, b)
        scratch = self.scratch.setdefault((y.shape, y.dtype), np.empty_like(y))
        scratch[...] = y
        time.sleep(1e-4)  # lets the other thread in, so that the fault shows each time
        return self.finished(scratch)

    def finished(self, scratch):
        return scratch


class IgnoresNewShapes(SoundKernel):
    """Fault: uses the shapes in the model file even after a resize."""

    def prepare(self, context, node):
        super().prepare(context, node)
        if any(context.tensors[i].is_dynamic for i in node.inputs):
            raise RuntimeError("shape of an input is not known")


class ChangesItsName(SoundDelegate):
    count = 0

    def name(self):
        ChangesItsName.count += 1
        return f"careful{self.count}"


class GivesNoReason(SoundDelegate):
    def is_node_supported_by_delegate(self, registration, node, context):
        return bool(super().is_node_supported_by_delegate(registration, node, context))


class FailsOnOtherOperators(SoundDelegate):
    def is_node_supported_by_delegate(self, registration, node, context):
        if node.options.fused_activation_function == Activation.TANH:
            return Rejection("activation")
        return super().is_node_supported_by_delegate(registration, node, context)


class SharesItsKernel(SoundDelegate):
    def __init__(self):
        self.only = SoundKernel()

    def create_delegate_kernel_interface(self):
        return self.only


class ServesOnce(SoundDelegate):
    used = False

    def initialize(self, context):
        if self.used:
            raise RuntimeError("it is in use")
        self.used = True


# -- soundness ---------------------------------------------------------------------------------


class ClaimsATypeItLeaves(SoundDelegate):
    claims = Capabilities([Claim("ADD", ["FLOAT32", "INT64"])])

    def is_node_supported_by_delegate(self, registration, node, context):
        return CAPABILITIES.check(registration, node, context)


class ClaimsAFeatureItLeaves(SoundDelegate):
    def is_node_supported_by_delegate(self, registration, node, context):
        a, b = (context.tensors[i].shape for i in (*node.inputs, -1, -1)[:2])
        if a != b:
            return Rejection("broadcast")
        return super().is_node_supported_by_delegate(registration, node, context)


class ClaimsTheImpossible(SoundDelegate):
    claims = Capabilities([Claim("ADD", "FLOAT32"), Claim("ADD", "STRING")])


class TakesMoreTypes(SoundDelegate):
    claims = Capabilities([Claim("ADD", "FLOAT32", "activation", "broadcast")])

    def is_node_supported_by_delegate(self, registration, node, context):
        if registration.name == "ADD" and context.tensors[node.inputs[0]].type == TensorType.INT64:
            return True
        return super().is_node_supported_by_delegate(registration, node, context)


class TakesMoreOperators(SoundDelegate):
    claims = Capabilities([Claim("ADD", "FLOAT32", "activation", "broadcast")])

    def is_node_supported_by_delegate(self, registration, node, context):
        return registration.name == "FLOOR" or super().is_node_supported_by_delegate(
            registration, node, context
        )


class TakesMoreFeatures(SoundDelegate):
    claims = Capabilities([Claim("ADD", "FLOAT32", "activation")])


class DeclaresNothing(SoundDelegate):
    claims = Capabilities()


# -- an operator without a kernel --------------------------------------------------------------


class PlusKernel(SoundKernel):
    """Kernel that adds, without a fault."""

    def result(self, step, registration, a, b):
        return a + b


class PlusDelegate(SoundDelegate):
    """Delegate without a fault that takes a custom operator unknown to Delegraph."""

    kernel = PlusKernel
    claims = Capabilities([Claim("Plus", ["FLOAT32", "INT32"], "scalar", "many-dims", "empty")])

    def is_node_supported_by_delegate(self, registration, node, context):
        return self.claims.check(registration, node, context)


def plus_with(kernel: type[SoundKernel]) -> type[PlusDelegate]:
    """Return the delegate of the custom operator with another kernel's faults."""
    mixed = type(f"{kernel.__name__}ThatAdds", (kernel, PlusKernel), {})
    return type(f"PlusWith{kernel.__name__}", (PlusDelegate,), {"kernel": mixed})


class ClaimsAnotherPlus(PlusDelegate):
    claims = Capabilities([Claim(["Plus", "Minus"], ["FLOAT32", "INT32"])])


class TakesOtherPluses(PlusDelegate):
    claims = Capabilities([Claim("Plus", "FLOAT32")])

    def is_node_supported_by_delegate(self, registration, node, context):
        return PlusDelegate.claims.check(registration, node, context)


class PlusOfFloatsOnly(PlusDelegate):
    def is_node_supported_by_delegate(self, registration, node, context):
        if context.tensors[node.inputs[0]].type == TensorType.INT32:
            return Rejection("integer")
        return super().is_node_supported_by_delegate(registration, node, context)


# -- the process -------------------------------------------------------------------------------


class Crashes(SoundKernel):
    """Fault: one operator kills the process."""

    def result(self, step, registration, a, b):
        if registration.name == "MUL":
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().result(step, registration, a, b)


class Hangs(SoundKernel):
    """Fault: one operator never returns."""

    def result(self, step, registration, a, b):
        while registration.name == "MUL":
            time.sleep(0.1)
        return super().result(step, registration, a, b)


def hangs_in(method: str, *, from_call: int = 1) -> type[SoundDelegate]:
    """Return a delegate whose given method, or its kernel's, never returns."""
    owner = SoundKernel if hasattr(SoundKernel, method) else SoundDelegate
    calls = 0

    def hang(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        while calls >= from_call:
            time.sleep(0.1)
        return getattr(owner, method)(self, *arguments)

    faulty = type("Hangs", (owner,), {method: hang})
    return with_kernel(faulty) if owner is SoundKernel else faulty


class CrashesAfterAResize(SoundKernel):
    """Fault: crashes in ``prepare`` if the output's shape has changed."""

    shape: Any = None

    def prepare(self, context, node):
        super().prepare(context, node)
        shape = context.tensors[node.outputs[0]].shape
        if self.shape not in (None, shape):
            os.kill(os.getpid(), signal.SIGSEGV)
        self.shape = shape


class CrashesWhenMade(SoundDelegate):
    def __init__(self):
        os.abort()


class CrashesWhenAsked(SoundDelegate):
    """Fault: crashes when asked about an operator that it does not claim."""

    def is_node_supported_by_delegate(self, registration, node, context):
        if registration.name == "FLOOR":
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().is_node_supported_by_delegate(registration, node, context)


# -- several nodes, kernels and interpreters ---------------------------------------------------


class SharesInnerArrays(SoundKernel):
    """Fault: all kernels share one dictionary of arrays for inner tensors."""

    shared: ClassVar[dict[Any, Any]] = {}

    def prepare(self, context, node):
        super().prepare(context, node)
        self.shared.update(self.inner)

    def values(self, tensor):
        return self.shared[tensor.index] if tensor.index in self.inner else tensor.data


class SharesItsProgram(SoundKernel):
    """Fault: keeps the prepared program in the class, so the last prepared kernel wins."""

    program: ClassVar[Any] = None

    def prepare(self, context, node):
        super().prepare(context, node)
        SharesItsProgram.program = self.nodes, self.inner

    def eval(self, context, node):
        self.nodes, self.inner = self.program
        super().eval(context, node)


class KeepsInnerResults(SoundKernel):
    """Fault: computes inner tensors only in the first invoke."""

    def prepare(self, context, node):
        super().prepare(context, node)
        self.done = set()

    def eval(self, context, node):
        for step, registration in self.nodes:
            y = context.tensors[step.outputs[0]]
            if y.index in self.done:
                continue
            a, b = (self.values(context.tensors[i]) for i in step.inputs)
            self.write(self.values(y), self.result(step, registration, a, b))
            if y.index in self.inner:
                self.done.add(y.index)


class LeavesAThread(SoundKernel):
    def init(self, context, params):
        super().init(context, params)
        self.stop = threading.Event()
        threading.Thread(target=self.stop.wait, args=(60,), daemon=True).start()


class LeavesAFile(SoundKernel):
    def init(self, context, params):
        super().init(context, params)
        self.file = os.open(os.devnull, os.O_RDONLY)


class ClosesItsFile(LeavesAFile):
    """No fault: closes the file that its base class leaves open."""

    def close(self):
        os.close(self.file)


class IsKept(SoundKernel):
    kernels: ClassVar[list[Any]] = []

    def init(self, context, params):
        super().init(context, params)
        self.kernels.append(self)


class WrongAfterManyModels(SoundKernel):
    """Fault: gives wrong results once the process has created a second kernel."""

    kernels = 0

    def init(self, context, params):
        super().init(context, params)
        WrongAfterManyModels.kernels += 1

    def result(self, step, registration, a, b):
        y = super().result(step, registration, a, b)
        return y + y.dtype.type(1) if WrongAfterManyModels.kernels > 1 else y


class WrongAfterManyElements(SoundKernel):
    """Fault: gives wrong results once the process has computed more than three elements."""

    elements = 0

    def result(self, step, registration, a, b):
        y = super().result(step, registration, a, b)
        WrongAfterManyElements.elements += y.size
        return y + y.dtype.type(1) if WrongAfterManyElements.elements > 3 else y
