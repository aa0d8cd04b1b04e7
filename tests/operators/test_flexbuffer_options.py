"""Options of custom operators."""

import pytest
from flatbuffers import flexbuffers

from delegraph.errors import OperatorError
from delegraph.operators.flexbuffer_options import flexbuffer_options, integer_option


def test_a_map_is_read():
    data = bytes(flexbuffers.Dumps({"size": 3, "scale": 0.5, "exact": True}))
    assert flexbuffer_options(data) == {"size": 3, "scale": 0.5, "exact": True}


def test_no_data_is_no_options():
    assert flexbuffer_options(b"") == {}


@pytest.mark.parametrize("data", [b"\x00", b"\xff" * 9, b"size"])
def test_damaged_data_is_refused(data):
    with pytest.raises(OperatorError, match="custom options are"):
        flexbuffer_options(data)


def test_another_value_than_a_map_is_refused():
    with pytest.raises(OperatorError, match="a list, expected a map"):
        flexbuffer_options(bytes(flexbuffers.Dumps([1, 2])))


@pytest.mark.parametrize(("given", "value"), [({"n": 3}, 3), ({"n": 3.9}, 3), ({}, 0)])
def test_numbers_are_cut_to_whole_ones(given, value):
    assert integer_option(given, "n", 0) == value


@pytest.mark.parametrize("given", [{"n": "many"}, {"n": 1}, {}])
def test_numbers_out_of_range_are_refused(given):
    with pytest.raises(OperatorError, match=r"option n is .* expected a number from 2 up"):
        integer_option(given, "n", 2)
