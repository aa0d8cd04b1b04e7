"""Values for the inputs of a model: given by the user, or random."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.graph.model import Model
from delegraph.tools.called_inputs import called_metadata, other_input_names
from delegraph.tools.given_inputs import GivenInput, given_inputs
from delegraph.tools.input_distributions import Distribution, Range, distributed_values
from delegraph.tools.model_call import Details, declared_shape, input_name, input_positions
from delegraph.tools.model_inputs import input_values
from delegraph.tools.tokenizing import text_for_all_inputs


@dataclass(frozen=True, slots=True)
class InputRequest:
    """Values or distributions that the user requests for the inputs.

    An input is named by its position, its name, its tensor's name, or its name in a signature;
    ``""`` means the only input.

    Attributes:
        values: texts ``VALUE`` or ``NAME=VALUE``, as for ``delegraph run --input``; inputs without
            a text get random values.
        shapes: mapping from an input's name to all its dimensions; the input is resized to them.
        distribution: distribution of random values.
        seed: seed of random values; equal seeds give equal values.
        ranges: mapping from an input's name to its lowest and highest random value, both inclusive
            for integers.
        sample_rate: sample rate of sounds in hertz; None means the rate in the metadata.
    """

    values: Sequence[str] = ()
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    distribution: Distribution = "benchmark"
    seed: int = 0
    ranges: Mapping[str, Range] = field(default_factory=dict)
    sample_rate: int | None = None

    def arrays(
        self, details: Sequence[Details], model: Model, signature: str | None = None
    ) -> list[GivenInput]:
        """Return the values of all inputs, in the order of *details*.

        Args:
            details: details of the inputs, from the interpreter or the signature.
            model: the model with these inputs.
            signature: name of the signature to call; None means the whole model.

        Raises:
            ArgumentError: no input has a given name, or an input cannot take its value, shape or
                range.
        """
        others = other_input_names(model, signature, details)
        shapes = _by_position("shape", self.shapes, details, others)
        ranges = _by_position("range", self.ranges, details, others)
        shaped = [_with_shape(entry, shapes.get(i)) for i, entry in enumerate(details)]
        rng = np.random.default_rng(self.seed)
        metadata = called_metadata(model, signature)

        def values_of(text: str, entry: Details, note: Callable[[str], object]) -> NDArray[Any]:
            if text == "random":
                between = ranges.get(next(i for i, e in enumerate(shaped) if e is entry))
                return distributed_values(entry, self.distribution, rng, between)
            described = metadata.tensor(int(entry["index"]))
            rate = self.sample_rate
            return input_values(text, entry, rng, described=described, sample_rate=rate, note=note)

        words = text_for_all_inputs(self.values, shaped, others, metadata)
        found = given_inputs(words, shaped, others, values_of)
        for position in ranges:
            if found[position].source != "random":
                name = shaped[position]["name"]
                raise ArgumentError(f"input {name!r} has values and a range; give one")
        return found


def _by_position(
    what: str, given: Mapping[str, Any], details: Sequence[Details], others: Mapping[str, int]
) -> dict[int, Any]:
    """Return the values *given* by names of inputs, by the inputs' positions."""
    names = input_positions(details, others) | ({"": 0} if len(details) == 1 else {})
    found: dict[int, Any] = {}
    for name, value in given.items():
        if name not in names:
            known = ", ".join(repr(entry["name"]) for entry in details)
            if not name:
                raise ArgumentError(f"a {what} without a name: say of which input, {known}")
            close = did_you_mean(name, sorted(names))
            raise ArgumentError(f"a {what} of {name!r}{close}, none of the inputs: {known}")
        if names[name] in found:
            raise ArgumentError(f"input {name!r} is given two {what}s")
        found[names[name]] = value
    return found


def _with_shape(details: Details, shape: Sequence[int] | None) -> Details:
    if shape is None:
        return details
    declared = declared_shape(details)
    if len(shape) != len(declared) or any(dim < 0 for dim in shape):
        raise ArgumentError(
            f"{input_name(details)}: shape {list(shape)} does not fit, expected "
            f"{len(declared)} sizes, none of them negative"
        )
    dims = np.array(shape, np.int32)
    return {**details, "shape": dims, "shape_signature": dims}
