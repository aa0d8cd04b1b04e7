from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from delegraph.schema import pruned, read_model, tables, write_model
from support.by_name import doubling_while, sines
from support.described_models import with_metadata
from support.signatures import two_signatures


@dataclass(frozen=True)
class Parts:
    tensors: list[list[str | None]]
    codes: int
    buffers: int


def parts(record: tables.Model) -> Parts:
    return Parts(
        [[tensor.name for tensor in s.tensors or ()] for s in record.subgraphs or ()],
        len(record.operator_codes or ()),
        len(record.buffers or ()),
    )


def read(content: bytes) -> tables.Model:
    return read_model(np.frombuffer(content, np.uint8))


def test_a_model_that_needs_all_it_has_keeps_it() -> None:
    for content in (sines(), doubling_while(), with_metadata(two_signatures(), name="both")):
        record = read(content)
        assert parts(pruned(record)) == parts(record)
        assert write_model(pruned(read(write_model(pruned(record))))) == write_model(pruned(record))


def test_what_only_removed_operators_need_goes() -> None:
    record = read(doubling_while())
    main, less, body = record.subgraphs or ()
    cut = record.replace(subgraphs=(main, less.replace(operators=(), outputs=()), body))
    before, after = parts(record), parts(pruned(cut))
    assert after.tensors == [before.tensors[0], ["x"], before.tensors[2]]
    assert (after.codes, after.buffers) == (before.codes - 1, before.buffers - 1)
    operators = [o for s in pruned(cut).subgraphs or () for o in s.operators or ()]
    codes = pruned(cut).operator_codes or ()
    assert [codes[o.opcode_index].builtin_code.name for o in operators] == ["WHILE", "ADD"]


def test_signatures_name_the_tensors_that_they_named() -> None:
    record = read(two_signatures())
    first, second = record.subgraphs or ()
    unused = tables.Tensor(name="unused")
    grown = second.replace(
        tensors=(unused, *(second.tensors or ())),
        inputs=(1,),
        outputs=(2,),
        operators=tuple(o.replace(inputs=(1,), outputs=(2,)) for o in second.operators or ()),
    )
    wave = (record.signature_defs or ())[1]
    moved = wave.replace(
        inputs=(tables.TensorMap(name="x", tensor_index=1),),
        outputs=(tables.TensorMap(name="y", tensor_index=2),),
    )
    signatures = ((record.signature_defs or ())[0], moved)
    shifted = record.replace(subgraphs=(first, grown), signature_defs=signatures)
    assert write_model(pruned(shifted)) == write_model(pruned(record))
