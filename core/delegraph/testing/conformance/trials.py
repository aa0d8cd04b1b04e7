"""Trials: cases with their right results, and the claims that they need.

For an operator without a kernel, the results of the case's reference are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from delegraph.delegation.delegate import Delegate, DelegateFlags
from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.partition_tolerance import ComputedNode
from delegraph.delegation.rules import PlacementRule
from delegraph.errors import DelegraphError
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor
from delegraph.runtime.arguments import OpResolverType
from delegraph.runtime.delegates.requested_delegates import AnyDelegate
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.options import PlacementPolicy
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.schema.writer import write_model
from delegraph.testing.conformance.features import features_of, forms_of, operators_of
from delegraph.testing.conformance.run_reports import model_begins, working
from delegraph.testing.operator_case import KeptCases, OperatorCase
from delegraph.testing.operator_cases import cases
from delegraph.testing.outputs import outputs_of
from delegraph.testing.registered_operators import MICRO_OPERATORS, REGISTERED_OPERATORS

Array = NDArray[Any]
Outputs = Sequence[Sequence[Array]]
"""Outputs of each invoke."""

KEPT = 4096
"""Largest number of trials, of a few kilobytes each, that are kept for later subjects."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A case with its right results.

    Attributes:
        case: the model with its inputs.
        expected: right value of each graph output, for each step (invoke).
        output_types: types of the graph outputs.
        computed: nodes of the main subgraph, with their output values.
        outputs: tensor indices of the graph outputs.
        forms: forms (types, version, activation) of the case's operator in the model.
        features: features that the model shows.
    """

    case: OperatorCase
    expected: Outputs
    output_types: tuple[TensorType, ...]
    computed: tuple[ComputedNode, ...]
    outputs: tuple[int, ...]
    forms: frozenset[NodeTraits]
    features: frozenset[str]

    @property
    def types(self) -> frozenset[str]:
        """Types of inputs and outputs of the case's operator."""
        return frozenset(type for form in self.forms for _, type in form.types)


def open_interpreter(
    case: OperatorCase,
    *delegates: AnyDelegate,
    keep_everything: bool = False,
    leaving: int | None = None,
) -> Interpreter:
    """Return an interpreter of a case, not yet allocated.

    Args:
        case: with delegates, its model is opened; without delegates, the model whose results are
            right.
        delegates: delegates to apply; no installed delegate is added to them.
        keep_everything: whether all tensors can be read after an invoke.
        leaving: index of a node that no delegate may claim; None means no such node.
    """
    if delegates:
        model_begins(case)
    else:
        working()
    is_own = delegates or case.reference is None
    content = case.model() if is_own else write_model(case.right)
    rules = [] if leaving is None else [PlacementRule("exclude", nodes=leaving)]
    return _opened(content, *delegates, keep=keep_everything, rules=rules)


def _opened(
    content: bytes,
    *delegates: AnyDelegate,
    keep: bool = False,
    rules: Sequence[PlacementRule] = (),
) -> Interpreter:
    return Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=keep,
        placement=PlacementPolicy(rules=rules),
        delegates=delegates,
    )


def all_answers(interpreter: Interpreter, case: OperatorCase) -> Outputs:
    """Run *interpreter* on the inputs of each step of *case*; return the outputs of each step."""
    return tuple(tuple(outputs_of(interpreter, arrays)) for arrays in case.steps)


def trial_of(case: OperatorCase) -> Trial | None:
    """Compute the right results of *case*; None if Delegraph rejects the model."""
    try:
        with open_interpreter(case, keep_everything=True) as interpreter:
            expected = all_answers(interpreter, case)
            right = interpreter.session.subgraphs[0]
            is_dynamic = right.has_dynamic_tensors
            with described(case, right) as main:
                operators = operators_of(main, case.op)
                forms = forms_of(main, operators)
                features = features_of(main, operators, case.steps, is_dynamic)
                computed, outputs = computed_nodes(case, right, main), tuple(main.outputs)
            types = tuple(right.tensors[i].type for i in right.outputs)
            declared = _with_outputs_declared(case, right)
            return Trial(declared, expected, types, computed, outputs, forms, features)
    except DelegraphError:
        return None


@lru_cache(KEPT)
def kept_trial(case: OperatorCase) -> Trial | None:
    """Return the trial of *case*, as :func:`trial_of` does; it is computed once and then kept."""
    return trial_of(case)


@lru_cache(KEPT // 16)
def kept_cases(op: str, seed: int, random_cases: int) -> KeptCases:
    """Return the cases of an operator; all subjects get the same objects; see :func:`cases`."""
    return KeptCases(partial(cases, op, seed=seed, count=random_cases))


def computed_nodes(case: OperatorCase, right: Subgraph, main: Subgraph) -> tuple[ComputedNode, ...]:
    """Return the nodes of a case's model, with their output values.

    If the model has a reference, the values of its inner tensors are unknown.
    """
    known = _known_tensors(case, right)
    tensors = [known.get(i, tensor) for i, tensor in enumerate(main.tensors)]
    return tuple(
        ComputedNode.of(operator.name, Node.from_operator(operator), tensors)
        for operator in main.operators
    )


@contextmanager
def described(case: OperatorCase, right: Subgraph) -> Iterator[Subgraph]:
    """Yield the main subgraph of a case's model, for reading types and shapes.

    Yields:
        *right* itself if it belongs to the same model. Otherwise a subgraph that cannot run,
        because its operator has no kernel; inner tensors then have their declared shapes.
    """
    if case.reference is None:
        yield right
        return
    known = _known_tensors(case, right)
    with _opened(write_model(_with_tensors(case.records, known))) as interpreter:
        yield interpreter.session.subgraphs[0]


def _with_outputs_declared(case: OperatorCase, right: Subgraph) -> OperatorCase:
    """Return *case* with the shapes and types of its computed tensors declared, as in *right*.

    *right* is the subgraph of the model as Delegraph has run it.

    Cases lack these shapes, because Delegraph computes them; but delegates read them earlier. If
    the case has a reference, output shapes that are known only during invoke remain unknown.
    """
    is_dynamic = right.has_dynamic_tensors
    is_simple = len(case.records.subgraphs or ()) == len(case.steps) == 1 and not case.is_resized
    if not is_simple or (is_dynamic and case.reference is None):
        return case
    computed = {i for operator in case.main.operators or () for i in operator.outputs or ()}
    known = {i: tensor for i, tensor in _known_tensors(case, right).items() if i in computed}
    return replace(case, records=_with_tensors(case.records, known, leave_open=is_dynamic))


def _known_tensors(case: OperatorCase, right: Subgraph) -> dict[int, Tensor]:
    """Return, by index, the tensors of a case's model whose shape and type the right run shows.

    All tensors are known if both models are the same; with a reference, only inputs and outputs.
    """
    if case.reference is None:
        return dict(enumerate(right.tensors))
    mine = (*(case.main.inputs or ()), *(case.main.outputs or ()))
    theirs = (*right.inputs, *right.outputs)
    return {i: right.tensors[j] for i, j in zip(mine, theirs, strict=True)}


def _with_tensors(
    records: tables.Model, known: Mapping[int, Tensor], leave_open: bool = False
) -> tables.Model:
    """Return records that declare shapes and types of the *known* tensors.

    Args:
        records: records of the model.
        known: mapping from an index in the model to the tensor.
        leave_open: whether to declare the shapes of *known* tensors as unknown.
    """
    graph, *others = records.subgraphs or ()
    tensors = list(graph.tensors or ())
    for i, tensor in known.items():
        shape = () if leave_open else tensor.shape
        tensors[i] = tensors[i].replace(
            shape=shape, type=tensor.type, has_rank=not leave_open, shape_signature=None
        )
    return records.replace(subgraphs=(graph.replace(tensors=tuple(tensors)), *others))


def trials_of(given: Iterable[OperatorCase]) -> tuple[Trial, ...]:
    """Return the cases in *given* with their right results, without those Delegraph cannot run."""
    return tuple(trial for trial in map(trial_of, given) if trial is not None)


def gallery_for(delegate: Delegate, count: int) -> Iterator[Trial]:
    """Yield up to *count* models of every operator, with right results, to offer to *delegate*.

    A delegate without support for dynamic tensors gets only models without them.
    """
    is_static = not delegate.flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS
    for op in (*REGISTERED_OPERATORS, *MICRO_OPERATORS):
        for trial in gallery_of(op, count):
            if not (is_static and "dynamic-shapes" in trial.features):
                yield trial


@cache
def gallery_of(op: str, count: int) -> tuple[Trial, ...]:
    """Return up to *count* models of the operator *op*, of different types, with right results."""
    return tuple(islice(_of_different_types(cases(op, count=count)), count))


def _of_different_types(given: Iterable[OperatorCase]) -> Iterator[Trial]:
    seen: set[frozenset[str]] = set()
    for case in given:
        types = frozenset(case.types())
        if types not in seen and (trial := trial_of(case)) is not None:
            seen.add(types)
            yield trial
