"""A model of two signatures."""

from __future__ import annotations

from delegraph.schema import tables, write_model
from delegraph.testing import tensor
from delegraph.testing.subgraphs import Graph, Op, records_of


def two_signatures() -> bytes:
    """``negate`` is the first subgraph, ``wave`` (a sine) the second; both call it x and y."""
    graphs = []
    for op in ("NEG", "SIN"):
        x, y = (tensor((1,), shape_signature=(-1,), name=name) for name in ("in", "out"))
        graphs.append(Graph([x], [y], [Op(op, [x], [y])]))
    made = (
        tables.SignatureDef(
            signature_key=key,
            inputs=(tables.TensorMap(name="x", tensor_index=0),),
            outputs=(tables.TensorMap(name="y", tensor_index=1),),
            subgraph_index=index,
        )
        for index, key in enumerate(("negate", "wave"))
    )
    return write_model(records_of(*graphs).replace(signature_defs=tuple(made)))
