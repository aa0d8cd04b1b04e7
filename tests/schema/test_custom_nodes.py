from __future__ import annotations

import numpy as np

from delegraph.graph.loader import parse_model
from delegraph.schema import CustomNode, pruned, read_model, with_plans, write_model
from support.by_name import sines
from support.signatures import two_signatures


def test_custom_operators_stand_where_the_plan_has_them() -> None:
    record = read_model(np.frombuffer(sines(), np.uint8))
    tensors = (record.subgraphs or ())[0].tensors or ()
    at = {tensor.name: index for index, tensor in enumerate(tensors)}
    node = CustomNode("Mine", b"options", (at["x"],), (at["d"],), b"constant", "name of it")
    other = CustomNode("Mine", b"", (at["a"], at["d"]), (at["y"],))
    model = parse_model(write_model(pruned(with_plans(record, [[0, node, other]]))))
    (subgraph,) = model.subgraphs
    sin, mine, plain = subgraph.operators
    assert [operator.name for operator in subgraph.operators] == ["SIN", "Mine", "Mine"]
    assert mine.custom_options is not None
    assert mine.custom_options.tobytes() == b"options"
    names = [subgraph.tensors[i].name for i in mine.inputs]
    assert names == ["x", "name of it"]
    data = subgraph.tensors[mine.inputs[1]].data
    assert data is not None
    assert data.tobytes() == b"constant"
    assert [subgraph.tensors[i].name for i in plain.inputs] == ["a", "d"]
    assert [tensor.name for tensor in subgraph.tensors] == ["x", "a", "d", "y", "name of it"]
    assert [subgraph.tensors[i].name for i in sin.outputs] == ["a"]


def test_a_plan_of_all_operators_changes_nothing() -> None:
    for content in (sines(), two_signatures()):
        record = read_model(np.frombuffer(content, np.uint8))
        plans = [range(len(s.operators or ())) for s in record.subgraphs or ()]
        assert with_plans(record, plans) == record
