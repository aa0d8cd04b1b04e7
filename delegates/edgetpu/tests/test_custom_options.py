"""The FlexBuffer map of the custom operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph.graph import load_model
from delegraph_edgetpu.custom_options import CUSTOM_OP, read_custom_options, write_custom_options
from delegraph_edgetpu.errors import ExecutableError
from support.corpus import corpus_file, needs_corpus

EXECUTABLE = np.random.default_rng(0).bytes(4096)
OPTIONS = write_custom_options(EXECUTABLE)


def decoded(options: bytes) -> dict[str, Any]:
    entries = flexbuffers.GetRoot(options).AsMap
    return {
        key.AsKey: value.AsStringBytes if value.IsString else value.Value
        for key, value in zip(entries.Keys, entries.Values, strict=True)
    }


@pytest.mark.parametrize("pages", [1, 2, 17])
def test_what_is_written_is_a_flexbuffer_of_the_real_shape(pages: int) -> None:
    executable = EXECUTABLE * pages
    expected = {"1": 0, "4": executable, "5": -1, "6": [18], "7": []}
    assert decoded(write_custom_options(executable)) == expected
    assert read_custom_options(write_custom_options(executable)) == executable


@needs_corpus
@pytest.mark.parametrize(
    "name",
    [
        "test_data__mobilenet_v1_0.25_128_quant_edgetpu",
        "test_data__deeplabv3_mnv2_dm05_pascal_quant_edgetpu",
        "test_data__keras_lstm_mnist_ptq_edgetpu",
    ],
)
def test_options_of_real_files_are_written_byte_for_byte(name: str) -> None:
    operators = load_model(corpus_file(name)).subgraphs[0].operators
    data = next(o.custom_options for o in operators if o.name == CUSTOM_OP)
    assert data is not None
    assert write_custom_options(read_custom_options(bytes(data))) == bytes(data)


def test_older_files_have_fewer_keys() -> None:
    older = flexbuffers.Dumps({"1": 0, "4": "DGE1 as text", "5": -1})
    assert read_custom_options(bytes(older)) == b"DGE1 as text"


@pytest.mark.parametrize("length", [*range(0, 100, 3), *range(4000, len(OPTIONS))])
def test_any_truncation_is_an_error(length: int) -> None:
    with pytest.raises(ExecutableError, match=rf"edgetpu-custom-op \({length} bytes\)"):
        read_custom_options(OPTIONS[:length])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "are empty"),
        (bytes(flexbuffers.Dumps([1, 2])), "no FlexBuffer map"),
        (bytes(flexbuffers.Dumps({"1": 0, "5": -1})), "no key '4' .*'1', '5'"),
        (bytes(flexbuffers.Dumps({"4": 3})), "key '4' .* is no string"),
    ],
)
def test_error_says_what_is_wrong(content: bytes, message: str) -> None:
    with pytest.raises(ExecutableError, match=message):
        read_custom_options(content)


def test_a_length_beyond_the_end_is_an_error_that_names_both() -> None:
    damaged = OPTIONS[:4] + (5000).to_bytes(4, "little") + OPTIONS[8:]
    with pytest.raises(ExecutableError, match=rf"cut off: {len(OPTIONS) - 8} of 5000 bytes"):
        read_custom_options(damaged)


def test_damage_anywhere_is_an_error_or_other_bytes_of_the_executable() -> None:
    rng = np.random.default_rng(1)
    for position in [*range(8), *range(4096, len(OPTIONS))]:
        damaged = bytearray(OPTIONS)
        damaged[position] ^= int(rng.integers(1, 256))
        try:
            found = read_custom_options(bytes(damaged))
        except ExecutableError:
            continue
        assert len(found) <= len(OPTIONS)


def test_executable_of_odd_length_is_refused() -> None:
    with pytest.raises(ValueError, match="5 bytes, expected a multiple of 4"):
        write_custom_options(b"12345")
