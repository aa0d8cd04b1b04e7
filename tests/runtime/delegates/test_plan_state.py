"""What a subgraph's state is after each move, and which moves a state refuses.

The moves are those of TFLite's ``Subgraph``: its states, and its rules about static and dynamic
delegates. Where a delegate is refused Delegraph keeps the earlier ones; TFLite removes all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    Interpreter,
    Node,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegateError, DelegraphError, StateError
from delegraph.runtime.context import SubgraphState
from delegraph.schema.enums import TensorType
from delegraph.schema.options import WhereOptions
from delegraph.testing import graph_model, one_op_model, tensor
from support.by_name import ByName, ByNameKernel

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
PROPAGATED = DYNAMIC | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

CHAIN = graph_model(
    [("SIN", "x", "a"), ("NEG", "a", "b"), ("SQRT", "b", "y")], inputs="x", outputs="y"
)


class Opening(ByName):
    """Leaves the shape of what it computes open until it has run."""

    def __init__(self, *ops: str) -> None:
        super().__init__(*ops, flags=DYNAMIC, name="opening", kernel=OpeningKernel)


class OpeningKernel(ByNameKernel):
    def prepare(self, context: DelegateContext, node: Node) -> None:
        for index in node.outputs:
            context.set_dynamic(context.tensors[index])

    def eval(self, context: DelegateContext, node: Node) -> None:
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        context.resize_tensor(y, x.shape)
        y.data[...] = -x.data


def refuse(context: DelegateContext, node: Node) -> None:
    raise ValueError("not this one")


class Failing(ByName):
    """Cannot prepare its kernel."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        kernel = ByNameKernel(self)
        kernel.prepare = refuse  # type: ignore[method-assign]  # so that it fails
        return kernel


def apply(make: Callable[[], ByName]) -> Callable[[Interpreter], None]:
    return lambda interpreter: interpreter.modify_graph_with_delegate(make())


MOVES: dict[str, Callable[[Interpreter], object]] = {
    "allocate": Interpreter.allocate_tensors,
    "invoke": Interpreter.invoke,
    "resize": lambda i: i.resize_tensor_input(0, [i.get_input_details()[0]["shape"][0] + 1]),
    "same size": lambda i: i.resize_tensor_input(0, i.get_input_details()[0]["shape"]),
    "release": lambda i: i.session.release_non_persistent_memory(),
    "remove": Interpreter.remove_all_delegates,
    "static": apply(lambda: ByName("SIN", name="static")),
    "dynamic": apply(lambda: ByName("SIN", flags=DYNAMIC, name="dynamic")),
    "opening": apply(lambda: Opening("NEG")),
    "opening the last": apply(lambda: Opening("SQRT")),
    "failing": apply(lambda: Failing("NEG", name="failing")),
    "failing dynamic": apply(lambda: Failing("NEG", flags=DYNAMIC, name="failing")),
}

UNREADY, READY, FIXED = SubgraphState.UNINVOKABLE, SubgraphState.INVOKABLE, SubgraphState.IMMUTABLE
Row = tuple[str, SubgraphState, str]

TABLE: list[Row] = [
    # moves; the last one is refused where it has a "!"; state afterwards; delegates in force
    ("", UNREADY, ""),
    ("invoke!", UNREADY, ""),
    ("release", UNREADY, ""),
    ("remove", UNREADY, ""),
    ("resize", UNREADY, ""),
    ("allocate", READY, ""),
    ("allocate allocate", READY, ""),
    ("allocate invoke", READY, ""),
    ("allocate resize", UNREADY, ""),
    ("allocate same_size", READY, ""),
    ("allocate resize invoke!", UNREADY, ""),
    ("allocate release", UNREADY, ""),
    ("allocate release invoke!", UNREADY, ""),
    ("allocate release allocate", READY, ""),
    ("allocate remove", READY, ""),
    ("static", FIXED, "static"),
    ("static invoke", FIXED, "static"),
    ("static allocate", FIXED, "static"),
    ("static same_size", FIXED, "static"),
    ("static resize", UNREADY, ""),
    ("static resize invoke!", UNREADY, ""),
    ("static resize allocate", FIXED, "static"),
    ("static resize dynamic", FIXED, "static dynamic"),
    ("static release", UNREADY, "static"),
    ("static release allocate", FIXED, "static"),
    ("static remove", READY, ""),
    ("static resize remove", UNREADY, ""),
    ("static static", FIXED, "static static"),
    ("static dynamic", FIXED, "static dynamic"),
    ("static failing!", FIXED, "static"),
    ("static failing_dynamic!", FIXED, "static"),
    ("static opening!", FIXED, "static"),
    ("static opening_the_last!", FIXED, "static"),
    ("static resize opening!", UNREADY, ""),
    ("allocate static", FIXED, "static"),
    ("allocate static opening!", FIXED, "static"),
    ("allocate static resize", UNREADY, ""),
    ("dynamic", UNREADY, "dynamic"),
    ("dynamic invoke!", UNREADY, "dynamic"),
    ("dynamic allocate", READY, "dynamic"),
    ("dynamic resize", UNREADY, "dynamic"),
    ("dynamic allocate resize", UNREADY, "dynamic"),
    ("dynamic allocate resize allocate invoke", READY, "dynamic"),
    ("dynamic release allocate", READY, "dynamic"),
    ("dynamic static", FIXED, "dynamic static"),
    ("dynamic static resize", UNREADY, ""),
    ("dynamic static resize allocate", FIXED, "dynamic static"),
    ("allocate dynamic", READY, "dynamic"),
    ("allocate dynamic remove", READY, ""),
    ("failing!", UNREADY, ""),
    ("allocate failing!", READY, ""),
    ("failing_dynamic", UNREADY, "failing"),
    ("failing_dynamic allocate!", UNREADY, "failing"),
    ("allocate failing_dynamic!", READY, ""),
    ("opening", UNREADY, "opening"),
    ("opening allocate", READY, "opening"),
    ("opening allocate invoke", READY, "opening"),
    ("opening static!", UNREADY, "opening"),
    ("opening allocate static!", READY, "opening"),
    ("opening dynamic", UNREADY, "opening dynamic"),
    ("opening allocate dynamic invoke", READY, "opening dynamic"),
    ("opening resize", UNREADY, "opening"),
    ("opening remove static", FIXED, "static"),
    ("allocate opening", READY, "opening"),
]


@pytest.mark.parametrize(("moves", "state", "delegates"), TABLE)
def test_each_move_leads_to_its_state(moves: str, state: SubgraphState, delegates: str) -> None:
    interpreter = Interpreter(model_content=CHAIN, delegates=[])
    for move in moves.split():
        action = MOVES[move.rstrip("!").replace("_", " ")]
        if not move.endswith("!"):
            action(interpreter)
            continue
        with pytest.raises(DelegraphError):
            action(interpreter)
    assert interpreter.session.state is state
    applied = interpreter.session.subgraphs[0].plan.applied
    assert " ".join(delegate.delegate.name() for delegate in applied) == delegates


@pytest.mark.parametrize("opening", ["NEG", "SQRT"])
def test_a_delegate_that_opens_a_shape_after_a_static_one_is_refused(opening: str) -> None:
    interpreter = Interpreter(model_content=CHAIN, delegates=[ByName("SIN", name="fixed")])
    before = interpreter.placement
    tensor_index = {"NEG": 2, "SQRT": 3}[opening]
    message = f"Cannot allow dynamic tensors .* 'fixed' .*tensor#{tensor_index} is .*, opening"
    with pytest.raises(DelegateError, match=message):
        interpreter.modify_graph_with_delegate(Opening(opening))
    assert interpreter.placement == before
    interpreter.invoke()


def test_a_shape_that_opens_at_a_resize_takes_the_delegate_off() -> None:
    """Which is so whether it opens the shape when it is applied first, or after a resize."""

    class Later(Opening):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            class Kernel(OpeningKernel):
                def prepare(self, context: DelegateContext, node: Node) -> None:
                    if context.tensors[node.inputs[0]].shape == (5,):
                        super().prepare(context, node)
                    else:
                        ByNameKernel.prepare(self, context, node)

            return Kernel(self)

    interpreter = Interpreter(model_content=CHAIN, delegates=[ByName("SIN"), Later("NEG")])
    interpreter.resize_tensor_input(0, [5])
    with pytest.raises(DelegateError, match="Cannot allow dynamic tensors"):
        interpreter.allocate_tensors()
    interpreter.allocate_tensors()
    assert interpreter.session.state is FIXED


def test_an_immutable_graph_keeps_the_types_of_its_tensors() -> None:
    interpreter = Interpreter(model_content=CHAIN, delegates=[])
    context = interpreter.session.subgraphs[0].context
    added = context.add_tensors(1)
    context.set_tensor_type(context.tensors[added], TensorType.INT8)
    interpreter.modify_graph_with_delegate(ByName("SIN"))
    with pytest.raises(StateError, match="cannot have another type when the graph is immutable"):
        context.set_tensor_type(context.tensors[added], TensorType.INT16)


def test_released_memory_is_taken_again_and_variables_begin_anew() -> None:
    interpreter = Interpreter(model_content=CHAIN, delegates=[])
    interpreter.allocate_tensors()
    interpreter.session.release_non_persistent_memory()
    with pytest.raises(ValueError, match="data is null"):
        interpreter.get_tensor(0)
    with pytest.raises(StateError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.zeros(4, np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(3).tolist() == [0, 0, 0, 0]


# -- what a kernel sees of the node that it replaced -------------------------------------------


class Looking(ByName):
    """Notes whether its output is dynamic when its kernel is prepared, and may give it a shape."""

    def __init__(self, flags: DelegateFlags, shape: tuple[int, ...] | None = None) -> None:
        super().__init__("WHERE", flags=flags, kernel=LookingKernel)
        self.seen: list[bool] = []
        self.shape = shape


class LookingKernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Looking) -> None:
        self.delegate = delegate

    def init(self, context: DelegateContext, params: Any) -> None: ...

    def prepare(self, context: DelegateContext, node: Node) -> None:
        y = context.tensors[node.outputs[0]]
        self.delegate.seen.append(y.is_dynamic)
        if self.delegate.shape is not None:
            context.resize_tensor(y, self.delegate.shape)

    def eval(self, context: DelegateContext, node: Node) -> None:
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        found = np.argwhere(x.data)
        if y.is_dynamic:
            context.resize_tensor(y, found.shape)
        y.data[...] = found


PLACES = one_op_model("WHERE", [tensor((4,), "BOOL")], [tensor((4, 1), "INT64")], WhereOptions())
CHOSEN = np.array([True, False, False, True])


def looked(interpreter: Interpreter) -> Any:
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, CHOSEN)
    interpreter.invoke()
    return interpreter.get_tensor(1).tolist()


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED])
@pytest.mark.parametrize("is_allocated", [False, True])
def test_a_kernel_sees_that_the_node_it_replaced_left_its_output_open(
    flags: DelegateFlags, is_allocated: bool
) -> None:
    delegate = Looking(flags)
    interpreter = Interpreter(model_content=PLACES, delegates=[])
    if is_allocated:
        interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(delegate)
    assert looked(interpreter) == [[0], [3]]
    interpreter.resize_tensor_input(0, [4])
    assert looked(interpreter) == [[0], [3]]
    assert delegate.seen
    assert all(delegate.seen)


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED])
def test_a_kernel_that_knows_the_shape_closes_it(flags: DelegateFlags) -> None:
    interpreter = Interpreter(model_content=PLACES, delegates=[Looking(flags, (2, 1))])
    assert looked(interpreter) == [[0], [3]]
    assert not interpreter.session.subgraphs[0].has_dynamic_tensors


def test_an_output_that_nobody_gives_a_shape_has_the_declared_one() -> None:
    class Careless(Looking):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            class Kernel(LookingKernel):
                def eval(self, context: DelegateContext, node: Node) -> None:
                    context.tensors[node.outputs[0]].data[...] = 7

            return Kernel(self)

    interpreter = Interpreter(model_content=PLACES, delegates=[Careless(DYNAMIC)])
    assert looked(interpreter) == [[7]] * 4
