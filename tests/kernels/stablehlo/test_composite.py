"""STABLEHLO_COMPOSITE."""

import numpy as np
from flatbuffers import flexbuffers

from delegraph.schema.options import AddOptions, StableHLOCompositeOptions
from delegraph.testing import delegraph_outputs, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.official import official_outputs


def test_the_decomposition_is_run():
    x, y, a, b = (tensor((2,)) for _ in range(4))
    options = StableHLOCompositeOptions(
        name="double",
        decomposition_subgraph_index=1,
        composite_attributes=np.frombuffer(flexbuffers.Dumps({"a": 1}), np.uint8),
    )
    main = Graph([x], [y], [Op("STABLEHLO_COMPOSITE", [x], [y], options)])
    model = model_of(main, Graph([a], [b], [Op("ADD", [a, a], [b], AddOptions())]))
    for outputs in (delegraph_outputs, official_outputs):
        (y,) = outputs(model, [np.float32([1, 2])])
        assert y.tolist() == [2, 4]
