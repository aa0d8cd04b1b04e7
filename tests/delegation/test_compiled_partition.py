from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from delegraph import AllocationType, Tensor, TensorType
from delegraph.delegation.compiled_partition import (
    MAX_OPTIONS,
    CompiledPartition,
    compiled_partition,
    read_custom_options,
)
from delegraph.errors import DelegraphError, MalformedModelError
from delegraph.graph.model import OperatorSpec
from delegraph.schema.enums import BuiltinOperator

BLOB = b"what the engine runs"
PARTITION = CompiledPartition(
    delegate="engine",
    distribution="delegraph-engine",
    distribution_version="1.0",
    version="2026.1",
    options="level=2",
    operators={"ADD": 2, "CONV_2D": 3},
    inputs=((1, 4), ()),
    outputs=((1, 2), None),
    partition_digest="0" * 64,
    blob_digest="1" * 64,
    blob_bytes=len(BLOB),
)


def changed(**fields: Any) -> bytes:
    found = json.loads(PARTITION.custom_options())
    return json.dumps({**found, **fields}).encode()


def test_what_is_written_is_what_is_read() -> None:
    assert read_custom_options(PARTITION.custom_options()) == PARTITION
    assert (PARTITION.provider, PARTITION.address) == ("delegraph-engine 1.0", "engine:level=2")
    assert PARTITION.facts()["nodes"] == "5: CONV_2D x3, ADD x2"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("delegate", ""),
        ("delegate", "a b"),
        ("distribution", "x; rm -r"),
        ("distribution", "--upgrade"),
        ("distribution_version", "1\x1b[2J"),
        ("version", None),
        ("version", "x" * 201),
        ("options", ["level=2"]),
        ("options", "\n"),
        ("operators", ["ADD"]),
        ("operators", {"ADD": -1}),
        ("operators", {"ADD": True}),
        ("inputs", None),
        ("inputs", [[1, -1]]),
        ("inputs", [[1, 2.0]]),
        ("inputs", [1]),
        ("outputs", [["1"]]),
        ("outputs", [[1 << 63]]),
        ("partition_digest", "0" * 63),
        ("blob_digest", "g" * 64),
        ("blob_bytes", "20"),
        ("blob_bytes", 0),
        ("blob_bytes", 1 << 31),
    ],
)
def test_each_field_is_checked(field: str, value: Any) -> None:
    with pytest.raises(MalformedModelError, match=f"'{field}' of its options has a wrong type or"):
        read_custom_options(changed(**{field: value}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "are no JSON"),
        (b"\xff", "are no JSON"),
        (b"[" * 50_000, "are no JSON"),
        (b"9" * 50_000, "are no JSON"),
        (b"[]", "are no JSON object"),
        (changed(format=2), "are of another format than 1; another version of delegraph"),
        (changed(more=1), "have the keys"),
        (b" " * (MAX_OPTIONS + 1), f"have over {MAX_OPTIONS} bytes"),
    ],
)
def test_damaged_options_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(MalformedModelError, match=f"^its options {message}"):
        read_custom_options(content)


def test_what_readers_would_refuse_is_not_written() -> None:
    with pytest.raises(DelegraphError, match=r"^delegate 'engine': 'version' of its options"):
        replace(PARTITION, version="1\n2").custom_options()


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ((0, -1, 4), (1, 2), "it lacks an input or output"),
        ((), (1, 2), "it has -1 inputs and 2 outputs, compiled were 2 and 2"),
        ((0, 3), (1, 2), "it has 1 inputs and 2 outputs, compiled were 2 and 2"),
        ((0, 3, 4), (1,), "it has 2 inputs and 1 outputs, compiled were 2 and 2"),
    ],
)
def test_an_operator_fits_its_options(
    inputs: tuple[int, ...], outputs: tuple[int, ...], message: str
) -> None:
    options = np.frombuffer(PARTITION.custom_options(), np.uint8)
    code = BuiltinOperator.CUSTOM
    operator = OperatorSpec(0, "delegraph-compiled", code, 1, inputs, outputs, (), None, options)
    with pytest.raises(MalformedModelError, match=message):
        compiled_partition(operator)


def blob_tensor(content: bytes, type: TensorType = TensorType.UINT8) -> Tensor:
    tensor = Tensor(0, type, (len(content),))
    tensor.data = np.frombuffer(content, tensor.dtype)
    tensor.allocation_type = AllocationType.MMAP_RO
    return tensor


def test_a_blob_is_checked_before_anybody_loads_it() -> None:
    partition = replace(PARTITION, blob_digest=hashlib.sha256(BLOB).hexdigest())
    assert partition.blob(blob_tensor(BLOB)) == BLOB
    with pytest.raises(MalformedModelError, match="its blob has 19 bytes, expected 20"):
        partition.blob(blob_tensor(BLOB[1:]))
    with pytest.raises(MalformedModelError, match="its blob has the SHA-256 "):
        partition.blob(blob_tensor(BLOB.upper()))
    with pytest.raises(MalformedModelError, match="no constant of UINT8"):
        partition.blob(blob_tensor(BLOB, TensorType.INT8))
    no_constant = blob_tensor(BLOB)
    no_constant.allocation_type = AllocationType.ARENA_RW
    with pytest.raises(MalformedModelError, match="no constant of UINT8"):
        partition.blob(no_constant)
