from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.delegation.num_threads import usable_processors
from delegraph.errors import ArgumentError, ArgumentTypeError
from delegraph.native import LiteRtInterpreter
from delegraph.operators.tensor import Tensor
from delegraph.runtime.arguments import (
    check_choice,
    checked_flag,
    checked_num_threads,
    model_of,
    subgraph_at,
    tensor_at,
)
from delegraph.schema.enums import TensorType
from delegraph.testing import one_op_model, tensor
from support.by_name import sines

TENSORS = [Tensor(index, TensorType.FLOAT32, (1,)) for index in range(3)]


@pytest.mark.parametrize("index", [0, 2, np.int64(1), np.uint8(2), True])
def test_any_integer_is_an_index(index: int) -> None:
    assert tensor_at(TENSORS, index).index == index


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_without_a_tensor_is_refused(index: int) -> None:
    with pytest.raises(ArgumentError, match=f"tensor index {index} exceeds max tensor index 3"):
        tensor_at(TENSORS, index)


def test_an_index_without_a_subgraph_is_refused() -> None:
    with pytest.raises(ArgumentError, match="subgraph index 5 exceeds max subgraph index 3"):
        subgraph_at(["a", "b", "c"], 5)


@pytest.mark.parametrize("index", [1.0, "1", None])
def test_what_is_no_integer_is_no_index(index: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="a tensor index is an int, not"):
        tensor_at(TENSORS, index)


def test_an_index_fits_in_a_c_int() -> None:
    with pytest.raises(ArgumentTypeError, match="a tensor index is an int of 32 bits, not 2147"):
        tensor_at(TENSORS, 2**31)


def test_a_flag_is_anything_with_a_truth_of_its_own() -> None:
    for yes, no in ((True, False), (3, None), (np.True_, 0)):
        assert (checked_flag("f", yes), checked_flag("f", no)) == (True, False)
    for wrong in ("no", [], {}):
        with pytest.raises(ArgumentTypeError, match="f is True or False, not"):
            checked_flag("f", wrong)


def test_a_number_of_threads_is_none_or_an_int_of_1_or_more() -> None:
    assert checked_num_threads(None) is None
    assert checked_num_threads(1) == 1
    for wrong in (0, -1, -5):
        with pytest.raises(ArgumentError, match="num_threads should >= 1"):
            checked_num_threads(wrong)
    assert checked_num_threads(True) == 1  # an int of Python's, as the official class has it
    for no_int in (1.0, "2", np.int64(1)):
        with pytest.raises(ArgumentError, match="type of num_threads should be int"):
            checked_num_threads(no_int)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ArgumentTypeError, match="num_threads should <= 2147483647"):
        checked_num_threads(2**31)


def test_too_many_threads_become_fewer(caplog: pytest.LogCaptureFixture) -> None:
    most = 8 * usable_processors()
    assert checked_num_threads(most) == most
    assert caplog.messages == []
    with Interpreter("docs/demo/models/sines.tflite", num_threads=2**31 - 1, delegates=[]) as made:
        assert made.session.options.recommended_num_threads == most
    assert caplog.messages == [
        f"num_threads is 2147483647; {most} are used, the most for the {most // 8} processors that "
        "this process may use"
    ]


def test_a_choice_is_one_of_those_that_are_shown() -> None:
    check_choice("mode", "b", ["a", "b"])
    with pytest.raises(ArgumentError, match=r"^mode is 'c', expected one of: 'a', 'b'$"):
        check_choice("mode", "c", ["a", "b"])


def test_a_model_comes_from_a_file_or_from_bytes_and_from_one_of_them(tmp_path: Path) -> None:
    content = one_op_model("NEG", [tensor((1,))], [tensor((1,))])
    file = tmp_path / "model.tflite"
    file.write_bytes(content)
    for model in (
        model_of(file, None),
        model_of(str(file), b""),
        model_of(os.fsencode(file), None),
        model_of(None, content),
    ):
        assert len(model.subgraphs[0].operators) == 1
    with pytest.raises(ArgumentError, match="both"):
        model_of(file, content)
    for path, nothing in ((None, None), ("", b""), (None, b"")):
        with pytest.raises(ArgumentError, match="must be specified"):
            model_of(path, nothing)


def test_a_model_given_as_the_wrong_argument_is_told_the_other_one() -> None:
    path = "docs/demo/models/sines.tflite"
    with pytest.raises(ValueError, match=r"912 bytes .* given as model_content"):
        Interpreter(Path(path).read_bytes())
    for wrong in (path, Path(path)):
        with pytest.raises(TypeError, match="a file is given as model_path"):
            Interpreter(model_content=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"failures": "raise"}, r"write failures=delegraph.FailurePolicy\(on_failure='raise'\)"),
        ({"failures": {"validate": True}}, r"delegraph.FailurePolicy\(validate=True\)"),
        ({"failures": "shadow"}, r"delegraph.FailurePolicy\(on_failure='shadow'\)"),
        (
            {"limits": 5},
            r"with the fields memory, .* not 5; write limits=delegraph.Limits\(time=5\)",
        ),
        ({"placement": "rules.toml"}, r"delegraph.PlacementPolicy\('rules.toml'\)"),
        ({"placement": "measured"}, r"delegraph.PlacementPolicy\(partitions='measured'\)"),
        ({"placement": {"require": "full"}}, r"delegraph.PlacementPolicy\(require='full'\)"),
        ({"cache_dir": 5}, "cache_dir is the path of a folder, not 5"),
        ({"delegates": 5}, "delegates is a list of names or objects, not 5"),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])
def test_a_wrong_group_of_options_says_what_to_write(
    host: Any, wrong: dict[str, Any], advice: str
) -> None:
    with pytest.raises(ArgumentError, match=advice):
        host(model_content=sines(), **wrong)
