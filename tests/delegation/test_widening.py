from __future__ import annotations

from delegraph import Claim
from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.widening import Widening, widened

FORM = NodeTraits("ADD", (("input", "INT8"),), version=3, activation="RELU")


def test_claims_are_wider_in_the_block_only() -> None:
    claimed = Capabilities([Claim("SUB", "FLOAT32", versions=(1, 1))])
    by = Widening(("ADD",), ("INT8",), (3,), ("RELU",), ("broadcast",))
    with widened(by):
        assert claimed.covers(FORM, {"broadcast"})
        assert not claimed.covers(FORM, {"scalar"})
    assert not claimed.covers(FORM)


def test_types_are_added_for_every_role() -> None:
    wide = Claim("ADD", "FLOAT32", output="FLOAT16").widened(Widening(types=("INT8",)))
    assert wide.types_of("input") == ("FLOAT32", "INT8")
    assert wide.types_of("output") == ("FLOAT16", "INT8")
    assert (wide.versions, wide.activations) == (None, ())
