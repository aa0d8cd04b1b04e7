"""Checks of nodes that only move values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from weakref import WeakKeyDictionary

from delegraph import DelegateContext, Rejection, Tensor
from delegraph_numba_cpu.lowering.checks import check_same_type, check_type, first_rejection
from delegraph_numba_cpu.lowering.registry import Call, Check

NUMBERS = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64")

WITH_HALVES = (*NUMBERS, "BOOL", "FLOAT16", "BFLOAT16")

TYPES = (*WITH_HALVES, "UINT16", "UINT32", "UINT64")
"""Types whose elements have 1, 2, 4 or 8 bytes; a move depends only on this size.

The official kernels of some operators accept fewer types; claims name those.
"""

FEATURES = ("empty", "many-dims", "scalar", "extreme-values", "broadcast")
"""Features of models that every move supports."""

FOLDED = ("CONCATENATION", "EXPAND_DIMS", "GATHER", "RESHAPE", "STRIDED_SLICE", "TRANSPOSE")
"""Operators that Delegraph computes once, in prepare, if their inputs are known then."""


def move_check(*parameters: int, inputs: int | None = None) -> Check:
    """Return a check for an operator that only moves elements: a function of its nodes.

    Args:
        parameters: positions of the inputs that are parameters of the move, such as axes.
        inputs: required number of inputs; None for any number.
    """
    return partial(check_moved, parameters=parameters, inputs=inputs)


def check_moved(
    call: Call,
    *,
    parameters: tuple[int, ...] = (),
    inputs: int | None = None,
    may_be_computed: bool = False,
) -> Rejection | None:
    """Return a rejection unless the node only moves elements, by constant parameters.

    A node whose outputs depend on shapes and constants alone is rejected, too: Delegraph computes
    it once.

    Args:
        call: the node that is turned into kernel calls.
        parameters: positions of the inputs that are parameters of the move, such as axes.
        inputs: required number of inputs; None for any number.
        may_be_computed: whether parameters may be computed by other nodes.
    """
    node, tensors = call.node, call.context.tensors
    if inputs is not None and len(node.inputs) != inputs:
        return Rejection("operands", actual=len(node.inputs), expected=inputs)
    if not node.inputs or not node.outputs or min(node.outputs) < 0:
        return Rejection("operands", expected="at least one input and all outputs")
    known = _known_tensors(call) if _needs_known(call, parameters) else frozenset()
    for i, index in enumerate(node.inputs):
        if index < 0 and i not in parameters:
            return Rejection("operands", actual=f"no input {i}", expected="all inputs")
        if may_be_computed or index < 0 or i not in parameters:
            continue
        if not (tensors[index].is_constant or index in known):
            return Rejection("computed-parameter", expected="a constant", tensor=index)
    if known.issuperset(node.outputs):
        return Rejection("folded", "it depends on shapes alone: Delegraph computes it once")
    data = [index for i, index in enumerate(node.inputs) if i not in parameters]
    moved = [tensors[index] for index in (*data, *node.outputs)]
    return first_rejection(*map(_check_data, moved), check_same_type(*moved))


def _needs_known(call: Call, parameters: tuple[int, ...]) -> bool:
    """Whether the check needs to know the tensors whose values are known before the first invoke.

    *parameters* are those of :func:`check_moved`.
    """
    given = [(i, call.context.tensors[t]) for i, t in enumerate(call.node.inputs) if t >= 0]
    if all(tensor.is_constant for _, tensor in given):
        return call.name in FOLDED
    return any(
        not tensor.is_constant and (i in parameters or tensor.type.name in ("INT32", "INT64"))
        for i, tensor in given
    )


_KNOWN: WeakKeyDictionary[DelegateContext, tuple[tuple[int, ...], frozenset[int]]] = (
    WeakKeyDictionary()
)
"""Mapping from a subgraph to its execution plan and the result of :func:`_known_tensors` for it."""


def _known_tensors(call: Call) -> frozenset[int]:
    """Return the indices of the tensors that the host computes from shapes and constants.

    A delegate must not take a node that computes one of these tensors. Otherwise the host would not
    know the value while it prepares other nodes, and would make their outputs dynamic.
    """
    context = call.context
    plan = context.get_execution_plan()
    known_plan, known = _KNOWN.get(context, ((), frozenset()))
    if known_plan != plan:
        known = computed_from_shapes(context, plan)
        _KNOWN[context] = plan, known
    return known


def computed_from_shapes(context: DelegateContext, plan: Sequence[int]) -> frozenset[int]:
    """Return the indices of the tensors that nodes of *plan* compute from shapes and constants.

    Args:
        context: the subgraph.
        plan: indices of its nodes, in execution order.
    """
    known: set[int] = set()
    for index in plan:
        node, registration = context.get_node_and_registration(index)
        inputs = [i for i in node.inputs if i >= 0]
        is_known = all(context.tensors[i].is_constant or i in known for i in inputs)
        if registration.name in ("SHAPE", "RANK") or (registration.name in FOLDED and is_known):
            known.update(node.outputs)
    return frozenset(known)


def _check_data(tensor: Tensor) -> Rejection | None:
    if tensor.sparsity is not None:
        return Rejection("sparse", expected="a dense constant", tensor=tensor.index)
    return check_type(tensor, *TYPES)
