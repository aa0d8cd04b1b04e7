"""The placement of a running model: every node, every partition, and what crosses over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    FailurePolicy,
    Interpreter,
    Node,
    Registration,
    Rejection,
)
from delegraph.delegation.placement import Crossing, NodePlacement, Placement
from delegraph.delegation.rules import require_full
from delegraph.errors import UnresolvedOpError
from delegraph.plugins import installed
from delegraph.runtime.unresolved_ops import check_resolved
from delegraph.schema.options import AddOptions, GatherOptions, VarHandleOptions, WhileOptions
from delegraph.testing import constant, graph_model, one_op_model, subgraphs_model, tensor
from support.answering import Answering
from support.by_name import ByName, ByNameKernel, X, run, sines
from support.corpus import corpus_file, needs_corpus
from support.half_weights import STORED, half_weights

FLOATS = 16  # bytes of [4] float32


class Everything(Delegate):
    """Takes all nodes of the plan, other delegates' included, and lets their kernels run."""

    def name(self) -> str:
        return "everything"

    def prepare(self, context: DelegateContext) -> None:
        def prepare(context: Any, node: Node) -> Any:
            inner = [context.get_node_and_registration(i) for i in node.options.nodes_to_replace]
            steps = [registration.prepare(context, n) for n, registration in inner]

            def run_all() -> None:
                for step in steps:
                    step()

            return run_all

        registration = Registration("everything", prepare)
        context.replace_node_subsets_with_delegate_kernels(
            registration, context.get_execution_plan(), self
        )


def placed(*delegates: Any, model: bytes | None = None) -> Placement:
    return Interpreter(model_content=model or sines(), delegates=delegates).placement


def crossings(placement: Placement) -> list[tuple[str, int | None, int | None]]:
    return [(c.name, c.source, c.target) for c in placement.crossings]


# -- notes -----------------------------------------------------------------------------------------


class Noted(ByName):
    """Has something to say."""

    def __init__(self, note: str, name: str = "noted") -> None:
        super().__init__("SIN", name=name)
        self.text = note

    def note(self) -> str:
        if not self.text:
            raise OSError("no words")
        return self.text


def test_delegates_without_a_note_add_nothing_to_the_line() -> None:
    placement = placed(ByName("SIN"))
    assert placement.notes == {}
    assert "(" not in str(placement)


def test_a_note_is_one_line_and_those_of_one_name_stand_together() -> None:
    delegates = [Noted("within\n1 unit"), Noted("slow"), Noted("slow"), Noted("fast", "other")]
    placement = Interpreter(model_content=sines(), delegates=delegates).placement
    assert placement.notes == {"noted": "within 1 unit; slow", "other": "fast"}
    assert "noted takes 2 in 2 partitions (within 1 unit; slow)" in str(placement)


def test_a_note_that_fails_is_told_and_harms_nothing() -> None:
    placement = placed(Noted(""))
    assert placement.notes == {"noted": "note() failed: OSError: no words"}


# -- nodes -----------------------------------------------------------------------------------------


def test_nodes_are_named_by_their_first_output() -> None:
    placement = Interpreter(model_content=sines()).placement
    assert [node.name for node in placement.nodes] == ["a", "b", "c", "d", "y"]
    assert str(placement.nodes[1]) == "node 1 (ADD)"
    assert str(NodePlacement(2, 1, "ADD")) == "node 1 (ADD) of subgraph 2"


def test_rows_are_flat_and_one_a_node() -> None:
    interpreter = Interpreter(
        model_content=sines(), delegates=[ByName("SIN"), ByName("ADD", name="second")]
    )
    rows = interpreter.placement.rows()
    assert rows[0] == {
        "subgraph": 0,
        "node": 0,
        "operator": "SIN",
        "name": "a",
        "is_delegated": True,
        "is_by_default": False,
        "is_unresolved": False,
        "is_constant": False,
        "delegate": "by_name",
        "partition": 0,
        "refused_by": "",
        "constraints": "",
        "reasons": "",
    }
    assert rows[2]["delegate"] is None
    assert rows[2]["refused_by"] == "by_name; second"
    assert rows[2]["constraints"] == "op; op"
    assert rows[2]["reasons"] == "by_name: op: is MUL, needs SIN; second: op: is MUL, needs ADD"
    assert rows[1]["refused_by"] == "by_name"  # and taken by the second
    assert [row["node"] for row in rows] == [0, 1, 2, 3, 4]
    scalars = (str, int, bool, type(None))
    assert all(type(value) in scalars for row in rows for value in row.values())
    assert len({tuple(row) for row in rows}) == 1


def test_a_node_that_nobody_took_was_refused_by_all_delegates() -> None:
    placement = placed(Answering(False))
    assert {row["reasons"] for row in placement.rows()} == {"answering: no reason given"}


def test_a_delegate_that_says_nothing_gave_no_reason() -> None:
    class Mute(Delegate):
        def name(self) -> str:
            return "mute"

        def prepare(self, context: DelegateContext) -> None:
            """Claim nothing."""

    placement = placed(Mute())
    assert {row["reasons"] for row in placement.rows()} == {"mute: no reason given"}
    for node in placement.to_json()["nodes"]:
        assert node["rejections"]["mute"]["constraint"] == "no-reason"


def test_nodes_that_only_validate_say_that_no_delegate_gets_them() -> None:
    plain: Any = ([("SIN", "p", "q")], "p", "q", {})
    content = subgraphs_model([plain, plain], names=["main", "VALIDATION:main"])
    placement = placed(ByName("SIN"), model=content)
    assert [row["reasons"] for row in placement.rows()] == [
        "",
        "by_name: no delegate gets a VALIDATION: subgraph",
    ]


def test_a_delegate_without_nodes_takes_none() -> None:
    placement = placed(ByName(name="idle"))
    assert str(placement) == "5 nodes: idle takes none, 5 stay with Delegraph's kernels"


# -- boundaries ------------------------------------------------------------------------------------


def test_crossings_name_source_and_target() -> None:
    placement = placed(ByName("SIN"), ByName("ADD", name="second"))
    # plan: SIN(0), MUL, SIN(1), ADD ADD (2); the constant `two` goes nowhere
    assert crossings(placement) == [
        ("x", None, 0),
        ("c", None, 1),
        ("x", None, 2),
        ("a", 0, 2),
        ("d", 1, 2),
        ("y", 2, None),
    ]
    assert {crossing.bytes for crossing in placement.crossings} == {FLOATS}
    assert placement.crossing_bytes == 6 * FLOATS
    assert not any(crossing.is_copied for crossing in placement.crossings)


def test_partitions_count_bytes_of_inputs_outputs_and_constants() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("MUL")])
    (partition,) = interpreter.placement.partitions
    found = (partition.input_bytes, partition.output_bytes, partition.constant_bytes)
    assert found == (FLOATS, FLOATS, 4)  # the constant is one float


def test_constants_count_as_the_file_stores_them() -> None:
    model = graph_model(
        [("Twice", "x w", "y")],
        inputs="x",
        outputs="y",
        tensors={"x": tensor((2,)), "y": tensor((2,)), "w": constant([7, -1], "INT4")},
    )
    (partition,) = placed(ByName("Twice"), model=model).partitions
    assert partition.constant_bytes == 1


def test_a_tensor_with_two_readers_crosses_once_for_each_party() -> None:
    model = graph_model(
        [("SIN", "x", "a"), ("ADD", "a a", "b", AddOptions()), ("ADD", "a b", "y", AddOptions())],
        inputs="x",
        outputs="a y",
    )
    placement = placed(ByName("SIN"), model=model)
    assert crossings(placement) == [("x", None, 0), ("a", 0, None)]  # kernels and the output


def test_sizes_follow_a_resize() -> None:
    interpreter = Interpreter(model_content=sines_of_any_length(), delegates=[ByName("SIN")])
    interpreter.allocate_tensors()
    assert {crossing.bytes for crossing in interpreter.placement.crossings} == {4}
    interpreter.resize_tensor_input(0, [100])
    interpreter.allocate_tensors()
    assert {crossing.bytes for crossing in interpreter.placement.crossings} == {400}


def test_sizes_of_shapes_that_are_open_are_not_known() -> None:
    placement = placed(
        ByName("SIN", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS), model=sines_of_any_length()
    )
    assert placement.unknown_crossings == len(placement.crossings) == 2
    assert placement.crossing_bytes is None
    assert placement.partitions[0].input_bytes is None
    assert placement.to_json()["totals"]["crossing_bytes"] is None


def sines_of_any_length() -> bytes:
    open_shape = tensor((1,), shape_signature=(-1,))
    return graph_model(
        [("SIN", "x", "y")], inputs="x", outputs="y", tensors={"x": open_shape, "y": open_shape}
    )


def test_sizes_known_only_while_invoking_are_known_after_it() -> None:
    model = graph_model([("Open", "x", "a"), ("MUL", "a a", "y")], inputs="x", outputs="y")

    def prepare(context: Any, node: Node) -> Any:
        source, result = (context.tensors[i] for i in (*node.inputs, *node.outputs))
        context.set_dynamic(result)

        def evaluate() -> None:
            context.resize_tensor(result, (3,))
            result.data[...] = source.data[:3]

        return evaluate

    interpreter = Interpreter(
        model_content=model,
        delegates=[ByName("MUL", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)],
        custom_ops={"Open": Registration("Open", prepare)},
    )
    interpreter.allocate_tensors()
    assert [c.bytes for c in interpreter.placement.crossings] == [None, None]
    run(interpreter)
    assert [c.bytes for c in interpreter.placement.crossings] == [12, 12]


def test_strings_have_no_known_size() -> None:
    text = tensor((2,), "STRING")
    model = graph_model(
        [("Twice", "x", "y")], inputs="x", outputs="y", tensors={"x": text, "y": text}
    )
    placement = placed(ByName("Twice"), model=model)
    assert [crossing.bytes for crossing in placement.crossings] == [None, None]


class Keeping(ByName):
    """Keeps what it computes in buffers of its own, in ``tensor.data`` besides."""

    def create_delegate_kernel_interface(self) -> ByNameKernel:
        return KeepingKernel(self)

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
        """The data is there."""


class KeepingKernel(ByNameKernel):
    def eval(self, context: DelegateContext, node: Node) -> None:
        super().eval(context, node)
        delegate: Any = node.delegate
        for index in node.outputs:
            context.set_buffer_handle(context.tensors[index], 1, delegate)


def test_copies_are_seen_once_a_delegate_keeps_a_tensor() -> None:
    interpreter = Interpreter(
        model_content=sines(), delegates=[Keeping("SIN"), ByName("ADD", name="second")]
    )
    run(interpreter)
    placement = interpreter.placement
    assert [c.name for c in placement.crossings if c.is_copied] == ["a", "d"]
    assert placement.to_json()["totals"]["copies"] == 2


def test_partitions_of_one_delegate_share_its_buffers_without_a_copy() -> None:
    model = graph_model([("SIN", "x", "a"), ("SIN", "a", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(
        model_content=model,
        delegates=[Keeping("SIN")],
        experimental_disable_delegate_node_fusion=True,
    )
    run(interpreter)
    copied = [(c.name, c.source, c.target, c.is_copied) for c in interpreter.placement.crossings]
    assert copied == [("x", None, 0, False), ("a", 0, 1, False), ("y", 1, None, True)]


# -- stacked delegates, subgraphs ------------------------------------------------------------------


def test_a_delegate_that_takes_anothers_nodes_has_the_models_nodes() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN"), Everything()])
    placement = interpreter.placement
    (partition,) = placement.partitions
    assert partition.delegate == "everything"
    assert partition.nodes == (0, 1, 2, 3, 4)
    assert {node.delegate for node in placement.nodes} == {"everything"}
    assert {node.partition for node in placement.nodes} == {0}
    assert crossings(placement) == [("x", None, 0), ("y", 0, None)]
    assert str(placement) == "5 nodes: by_name takes none, everything takes 5 in 1 partition"
    require_full(placement)
    np.testing.assert_allclose(run(interpreter), np.sin(X) + X + np.sin(2 * X), rtol=1e-6)


def test_nodes_of_an_absorbed_subgraph_are_with_the_delegate_of_the_caller() -> None:
    class Loops(ByName):
        """Takes WHILE nodes and computes their subgraphs itself."""

        def is_node_supported_by_delegate(
            self, registration: Registration, node: Node, context: DelegateContext
        ) -> bool | Rejection:
            if registration.name == "WHILE":
                for index in (1, 2):
                    context.mark_subgraph_as_delegation_skippable(index)
                return True
            return Rejection("op", actual=registration.name)

    call = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    plain: Any = ([("SIN", "p", "q")], "p", "q", {})
    content = subgraphs_model(
        [([("SIN", "w", "x"), ("WHILE", "x", "y", call)], "w", "y", {}), plain, plain, plain]
    )
    loops = Loops(name="loops", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    placement = placed(loops, model=content)
    assert [(node.subgraph, node.delegate) for node in placement.nodes] == [
        (0, None),
        (0, "loops"),
        (1, "loops"),
        (2, "loops"),
        (3, None),
    ]
    assert {node.partition for node in placement.nodes} == {None, 0}
    assert str(placement).startswith("5 nodes: loops takes 3 in 1 partition")


def test_a_quarantined_delegate_is_called_so() -> None:
    class WrongKernel(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            super().eval(context, node)
            context.tensors[node.outputs[0]].data[...] += 1

    delegates = [ByName("MUL", name="wrong", kernel=WrongKernel), ByName("SIN", name="right")]
    interpreter = Interpreter(
        model_content=sines(), delegates=delegates, failures=FailurePolicy(on_failure="shadow")
    )
    assert interpreter.placement.quarantined == ()
    run(interpreter)
    assert interpreter.placement.quarantined == ("wrong",)
    assert str(interpreter.placement) == (
        "5 nodes: wrong takes 1 in 1 partition (quarantined), right takes 2 in 2 partitions, "
        "2 stay with Delegraph's kernels"
    )
    assert interpreter.placement.to_json()["quarantined"] == ["wrong"]


def test_nothing_runs_an_operator_without_kernel_and_delegate() -> None:
    model = graph_model([("SIN", "x", "a"), ("Unknown", "a", "y")], inputs="x", outputs="y")
    left = Interpreter(model_content=model, delegates=[ByName("SIN")])
    assert str(left.placement) == (
        "2 nodes: by_name takes 1 in 1 partition, 1 that nothing can run"
    )
    assert [node.index for node in left.placement.unresolved()] == [1]
    with pytest.raises(UnresolvedOpError, match="unresolved custom op: Unknown"):
        check_resolved(left.placement, [s.plan for s in left.session.subgraphs])
    taken = Interpreter(model_content=model, delegates=[ByName("Unknown")])
    assert taken.placement.unresolved() == []
    check_resolved(taken.placement, [s.plan for s in taken.session.subgraphs])


def test_json_names_everything() -> None:
    found = placed(ByName("SIN")).to_json()
    assert found["totals"] == {
        "nodes": 5,
        "constants": 0,
        "delegated": 2,
        "by_default": 0,
        "unresolved": 0,
        "partitions": 2,
        "crossings": 4,
        "crossing_bytes": 4 * FLOATS,
        "copies": 0,
    }
    assert set(found["default_totals"].values()) == {0}
    assert found["crossings"][0] == {
        "subgraph": 0,
        "tensor": 0,
        "name": "x",
        "bytes": FLOATS,
        "source": None,
        "target": 0,
        "is_copied": False,
    }
    assert found["partitions"][0]["input_bytes"] == FLOATS
    assert found["nodes"][4]["name"] == "y"
    assert Crossing(**found["crossings"][0]).target == 0


@needs_corpus
@pytest.mark.parametrize(
    "name",
    [
        "examples__mobilenet_v2_035_96_embedder_with_metadata",
        "support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29",
        "LiteRT__multi_subgraphs_while",
        "gles__style_transfer_quantized_dynamic",
        "LiteRT__gather_string",
    ],
)
def test_every_node_of_a_real_model_is_accounted_for(name: str) -> None:
    if not {"add_sub", "sin"} <= {offer.spec.name for offer in installed().offers()}:
        pytest.skip("delegraph-example is not installed")
    interpreter = Interpreter(corpus_file(name), delegates=["add_sub", "sin"])
    interpreter.allocate_tensors()
    placement = interpreter.placement
    model = interpreter.session.model
    assert [(n.subgraph, n.index, n.op) for n in placement.nodes] == [
        (s.index, o.index, o.name) for s in model.subgraphs for o in s.operators
    ]
    for node in placement.nodes:
        if node.delegate is None:
            assert set(node.rejections) == {"add_sub", "sin"}
            assert "no-reason" not in {r.constraint for r in node.rejections.values()}
        else:
            assert node.partition is not None
            assert node.index in placement.partitions[node.partition].nodes
    in_partitions = [(p.subgraph, node) for p in placement.partitions for node in p.nodes]
    assert (
        len(in_partitions)
        == len(set(in_partitions))
        == sum(node.delegate is not None for node in placement.nodes)
    )


class Takes(Delegate):
    """Takes operators by name, and computes nothing."""

    def __init__(self, op: str) -> None:
        self.op = op

    def name(self) -> str:
        return "takes"

    def prepare(self, context: DelegateContext) -> None:
        nodes = [
            i
            for i in context.get_execution_plan()
            if context.get_node_and_registration(i)[1].name == self.op
        ]
        registration = Registration("takes", lambda context, node: lambda: None)
        context.replace_node_subsets_with_delegate_kernels(registration, nodes, self)


def test_constant_strings_count_with_their_offsets() -> None:
    words = [b"one", b"", b"three"]
    inputs = [constant(np.array(words, object), "STRING"), tensor((1,), "INT32")]
    model = one_op_model("GATHER", inputs, [tensor((1,), "STRING")], GatherOptions())
    (partition,) = placed(Takes("GATHER"), model=model).partitions
    assert partition.constant_bytes == 4 * (1 + len(words) + 1) + len(b"".join(words))
    assert (partition.input_bytes, partition.output_bytes) == (4, None)


def test_resources_that_cross_over_are_handles_of_no_bytes() -> None:
    nodes = [
        ("VAR_HANDLE", "", "h", VarHandleOptions(shared_name="v")),
        ("READ_VARIABLE", "h", "y"),
    ]
    tensors = {"h": tensor((), "RESOURCE")}
    model = graph_model(nodes, inputs="", outputs="y", tensors=tensors)
    placement = placed(Takes("READ_VARIABLE"), model=model)
    assert ("h", 0) in [(crossing.name, crossing.bytes) for crossing in placement.crossings]


# -- constants -------------------------------------------------------------------------------------


def test_constants_that_are_computed_once_are_counted_apart() -> None:
    placement = placed(ByName("MUL", "SIN"), model=half_weights())
    assert str(placement) == ("3 nodes: by_name takes 3 in 1 partition; 2 constants, computed once")
    require_full(placement)
    assert [row["node"] for row in placement.rows() if row["is_constant"]] == [0, 2]
    told = placement.to_json()
    totals = {key: told["totals"][key] for key in ("nodes", "constants", "delegated")}
    assert totals == {"nodes": 3, "constants": 2, "delegated": 3}
    assert told["nodes"][0]["is_constant"] is True
    assert told["nodes"][0]["rejections"] == {}


def test_constants_that_are_computed_once_cross_no_boundary() -> None:
    placement = placed(ByName("MUL"), model=half_weights())
    assert crossings(placement) == [("x", None, 0), ("b", 0, None)]
    (partition,) = placement.partitions
    assert (partition.input_bytes, partition.constant_bytes) == (FLOATS, 2 * STORED)


def test_constants_that_a_delegate_computes_are_nodes() -> None:
    placement = placed(ByName("DEQUANTIZE"), model=half_weights())
    assert str(placement).startswith("5 nodes: by_name takes 2 in ")
    assert ("w", 0, None) in crossings(placement)
