"""Which operator of the file a node of an official runtime is."""

from __future__ import annotations

import pytest

from delegraph import BuiltinOperator, DelegateContext, DelegateFlags
from delegraph.errors import DelegateError
from delegraph.graph import OperatorSpec, SubgraphSpec, parse_model
from delegraph.native import LiteRtInterpreter
from delegraph.native.litert.model_alignment import NodeIdentity, align, require_same_types
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import constant, graph_model, tensor
from support.corpus import corpus_file, needs_corpus
from support.looking import Looking

ADD, MUL, CUSTOM = (int(BuiltinOperator[name]) for name in ("ADD", "MUL", "CUSTOM"))


def file() -> SubgraphSpec:
    """x + x = a; a * a = b; Twice(b) = y."""
    nodes = [
        ("ADD", "x x", "a", AddOptions()),
        ("MUL", "a a", "b", MulOptions()),
        ("Twice", "b", "y"),
    ]
    return parse_model(graph_model(nodes, inputs="x", outputs="y")).subgraphs[0]  # type: ignore[arg-type]  # tuples of both lengths


NODES = [
    NodeIdentity(0, ADD, "", (0, 0), (1,)),
    NodeIdentity(1, MUL, "", (1, 1), (2,)),
    NodeIdentity(2, CUSTOM, "Twice", (2,), (3,)),
]


def found(nodes: list[NodeIdentity]) -> dict[int, int]:
    return {node: operator.index for node, operator in align(nodes, file()).items()}


def test_nodes_are_the_operators_in_order() -> None:
    assert found(NODES) == {0: 0, 1: 1, 2: 2}


def test_an_operator_that_the_runtime_left_out_moves_the_numbers_behind_it() -> None:
    nodes = [NodeIdentity(0, MUL, "", (1, 1), (2,)), NodeIdentity(1, CUSTOM, "Twice", (2,), (3,))]
    assert found(nodes) == {0: 1, 1: 2}


@pytest.mark.parametrize(
    "nodes",
    [
        [NODES[1], NODES[0]],
        [NodeIdentity(0, MUL, "", (0, 0), (1,))],
        [NodeIdentity(0, ADD, "", (0, 1), (1,))],
        [NodeIdentity(0, ADD, "", (0, 0), (2,))],
        [NodeIdentity(2, CUSTOM, "Thrice", (2,), (3,))],
        [*NODES, NodeIdentity(3, ADD, "", (0, 0), (1,))],
    ],
    ids=["order", "operator", "inputs", "outputs", "custom name", "one more"],
)
def test_anything_else_is_another_model(nodes: list[NodeIdentity]) -> None:
    with pytest.raises(DelegateError, match="Is it the model that the interpreter runs"):
        align(nodes, file())


def test_a_message_names_the_node() -> None:
    with pytest.raises(DelegateError, match=r"the runtime's node 7 is ADD of \[5\] to \[6\]"):
        align([NodeIdentity(7, ADD, "", (5,), (6,))], file())
    with pytest.raises(DelegateError, match=r"node 7 is 999 of"):
        align([NodeIdentity(7, 999, "", (5,), (6,))], file())


def test_a_node_that_reads_the_float16_constant_itself_is_the_same() -> None:
    tensors = {"h": constant([1, 2, 3, 4], type="FLOAT16"), "f": tensor((4,))}
    content = graph_model(
        [("DEQUANTIZE", "h", "f"), ("ADD", "x f", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors=tensors,
    )
    spec = parse_model(content).subgraphs[0]
    add = spec.operators[1]
    half = spec.operators[0].inputs[0]
    nodes = [NodeIdentity(1, ADD, "", (add.inputs[0], half), add.outputs)]
    assert align(nodes, spec)[1] is add


@pytest.mark.parametrize(("inputs", "outputs"), [((), (0,)), ((0,), ()), ((-1,), (0,))])
def test_an_operator_may_lack_its_operands(
    inputs: tuple[int, ...], outputs: tuple[int, ...]
) -> None:
    code = BuiltinOperator.DEQUANTIZE
    operator = OperatorSpec(0, "DEQUANTIZE", code, 1, inputs, outputs)
    node = NodeIdentity(0, code, "", inputs, outputs)
    tensors = parse_model(graph_model([("SIN", "x", "y")], inputs="x", outputs="y")).subgraphs[0]
    spec = SubgraphSpec(0, "", tensors.tensors, (operator,), (), ())
    assert align([node], spec) == {0: operator}


def test_types_are_those_of_the_model_and_more_tensors_may_follow() -> None:
    require_same_types([1, 1, 9], [1, 1], 0)
    for types in ([1], [1, 2]):
        with pytest.raises(DelegateError, match="subgraph 3 have other types"):
            require_same_types(types, [1, 1], 3)


class Dynamic(Looking):
    """Looks before the runtime has allocated, which it refuses to do for that model."""

    @property
    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS


@needs_corpus
def test_a_real_runtime_leaves_out_an_operator_without_a_word() -> None:
    pytest.importorskip("ai_edge_litert")
    seen = []

    def look(context: DelegateContext) -> None:
        node, _ = context.get_node_and_registration(0)
        seen.append((context.get_execution_plan(), node.inputs, node.outputs))

    path = corpus_file("LiteRT__add_shared_tensors")
    operators = parse_model(path.read_bytes()).subgraphs[0].operators
    LiteRtInterpreter(path, delegates=[Dynamic(look)])
    assert len(operators) == 2
    assert seen == [((0,), operators[1].inputs, operators[1].outputs)]
