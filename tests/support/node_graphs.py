"""Models of small subgraphs with the names that a test needs."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.graph import Model, parse_model
from delegraph.schema import tables, write_model
from delegraph.testing import tensor
from delegraph.testing.subgraphs import Graph, Op, records_of


def named_subgraphs(
    names: Sequence[str | None], signatures: Sequence[tuple[str, int]] = ()
) -> Model:
    """Return a model with one NEG per subgraph; see :func:`named_subgraphs_file`."""
    return parse_model(named_subgraphs_file(names, signatures))


def named_subgraphs_file(
    names: Sequence[str | None], signatures: Sequence[tuple[str, int]] = ()
) -> bytes:
    """Return a model file with one NEG per subgraph.

    Args:
        names: of the subgraphs; None for none.
        signatures: key and subgraph of each.
    """
    graphs = []
    for _ in names:
        x, y = tensor((1,), name="in"), tensor((1,), name="out")
        graphs.append(Graph([x], [y], [Op("NEG", [x], [y])]))
    records = records_of(*graphs)
    named = (spec.replace(name=n) for spec, n in zip(records.subgraphs, names, strict=True))
    made = (_signature(key, index) for key, index in signatures)
    return write_model(records.replace(subgraphs=tuple(named), signature_defs=tuple(made)))


def _signature(key: str, subgraph: int) -> tables.SignatureDef:
    return tables.SignatureDef(
        signature_key=key,
        inputs=(tables.TensorMap(name="x", tensor_index=0),),
        outputs=(tables.TensorMap(name="y", tensor_index=1),),
        subgraph_index=subgraph,
    )
