from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import ArgumentError
from delegraph.graph.loader import parse_model
from delegraph.schema.options import AddOptions
from delegraph.testing import one_op_model, tensor
from delegraph.tools import InputRequest
from delegraph.tools.model_call import model_call
from support.signatures import two_signatures


def arrays(request: InputRequest, content: bytes, signature: str | None = None) -> list[Any]:
    """Return the values of a model's inputs."""
    details = model_call(Interpreter(model_content=content), signature).input_details()
    return [given.values for given in request.arrays(details, parse_model(content), signature)]


def added(kind: str = "FLOAT32", dims: tuple[int, ...] = (2, 3)) -> bytes:
    """Return a model of two inputs, t0 + t1, whose first dimension is open."""
    kinds = [tensor(dims, type=kind, shape_signature=(-1, *dims[1:])) for _ in range(2)]
    return one_op_model("ADD", kinds, [tensor(dims, type=kind)], AddOptions())


def test_what_is_not_given_is_random_as_the_distribution_has_it() -> None:
    ones, random = arrays(InputRequest(["t0=1"]), added("INT32", (2, 300)))
    assert (ones == 1).all()
    assert (random.min(), random.max()) == (0, 99)
    _, other = arrays(InputRequest(["t0=1"], distribution="run"), added("INT32", (2, 300)))
    assert (other.min(), other.max()) == (0, 1)


def test_the_seed_decides_the_values() -> None:
    first, again, other = (arrays(InputRequest(seed=seed), added())[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_range_is_that_of_one_input_and_has_both_ends() -> None:
    first, second = arrays(InputRequest(ranges={"1": (5, 7)}), added("INT32", (2, 300)))
    assert first.max() == 99
    assert set(second.ravel()) == {5, 6, 7}


def test_a_range_of_floats_is_uniform() -> None:
    first, _ = arrays(InputRequest(ranges={"t0": (5, 7)}), added(dims=(2, 300)))
    assert 5 <= first.min() < 5.1 < 6.9 < first.max() <= 7


@pytest.mark.parametrize("name", ["t0", "0"])
def test_a_shape_may_be_any_of_the_same_rank(name: str) -> None:
    request = InputRequest(["t1=1"], shapes={name: (4, 5)})
    first, second = arrays(request, added())
    assert (first.shape, second.shape) == ((4, 5), (2, 3))


def test_a_given_array_has_to_have_the_shape_that_is_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    word = f"t0={tmp_path}/x.npy"
    assert arrays(InputRequest([word], shapes={"t0": (4, 3)}), added())[0].shape == (4, 3)
    with pytest.raises(ArgumentError, match=r"has shape \[4, 3\], expected \[5, 3\]"):
        arrays(InputRequest([word], shapes={"t0": (5, 3)}), added())


def test_names_are_those_of_a_signature_too() -> None:
    for signature, name in ((None, "x"), (None, "in"), (None, ""), ("wave", "x")):
        request = InputRequest(shapes={name: (4,)}, ranges={name: (2, 3)})
        (values,) = arrays(request, two_signatures(), signature)
        assert (values.shape, values.min() >= 2) == ((4,), True)


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        (
            InputRequest(shapes={"t2": (1, 2)}),
            "FLOAT32",
            "shape of 't2', none of the inputs: 't0', 't1'",
        ),
        (
            InputRequest(ranges={"": (1, 2)}),
            "FLOAT32",
            "a range without a name: say of which input, 't0', 't1'",
        ),
        (
            InputRequest(shapes={"t0": (1, 2), "0": (1, 3)}),
            "FLOAT32",
            "input '0' is given two shapes",
        ),
        (
            InputRequest(shapes={"t0": (6,)}),
            "FLOAT32",
            r"input 't0' \(float32 \[-1, 3\]\): shape \[6\] does not fit, expected 2 sizes",
        ),
        (
            InputRequest(shapes={"t0": (-1, 3)}),
            "FLOAT32",
            r"shape \[-1, 3\] does not fit, .* none of them negative",
        ),
        (InputRequest(ranges={"t0": (7, 5)}), "INT32", "no values lie between 7 and 5"),
        (
            InputRequest(ranges={"t0": (0, 300)}),
            "INT8",
            "input 't0' .*: int8 cannot go from 0 to 300",
        ),
        (
            InputRequest(ranges={"t0": (0, 3)}, distribution="run"),
            "INT8",
            "random values of 'run' have a range already; --distribution benchmark takes one",
        ),
    ],
)
def test_what_does_not_fit_is_refused(request_: InputRequest, kind: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        arrays(request_, added(kind))


def test_a_range_for_an_input_that_is_given_is_refused() -> None:
    with pytest.raises(ArgumentError, match="input 't0' has values and a range; give one"):
        arrays(InputRequest(["t0=1"], ranges={"t0": (1, 2)}), added())
