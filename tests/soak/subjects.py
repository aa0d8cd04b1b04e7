"""Models whose right answers are known, and interpreters of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter, OpResolverType
from delegraph.schema.options import AddOptions, LessOptions, WhileOptions
from delegraph.testing import constant, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from delegraph.tools.model_inputs import random_values

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"
INPUTS = 12


class Subject:
    """A model with inputs, and the right outputs computed by Delegraph's kernels.

    Args:
        name: of the model.
        content: the file; it has one input and one output.
        seed: of the inputs.
        resizable: whether the first dimension may be any number.
        inputs: instead of random ones.

    Attributes:
        inputs: one array each.
    """

    def __init__(
        self,
        name: str,
        content: bytes,
        *,
        seed: int = 0,
        resizable: bool = False,
        inputs: Sequence[NDArray[Any]] | None = None,
    ) -> None:
        self.name, self.content, self.resizable = name, content, resizable
        with self.open() as core:
            core.allocate_tensors()
            detail = core.get_input_details()[0]
            rng = np.random.default_rng(seed)
            self.inputs = list(inputs or (random_values(detail, rng) for _ in range(INPUTS)))
            self._right = [answer(core, x) for x in self.inputs]

    def open(self, *delegates: Any, **arguments: Any) -> Interpreter:
        """Return an interpreter with only these delegates."""
        return Interpreter(
            model_content=self.content,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            delegates=delegates,
            **arguments,
        )

    def check(self, interpreter: Interpreter, chance: Random, batch: int = 0) -> None:
        """Invoke with some of the inputs.

        Args:
            interpreter: allocated for *batch* inputs at once; 0 for the shape of the file.
            chance: which inputs.
            batch: how many.

        Raises:
            AssertionError: the answer is another than that of Delegraph's kernels.
        """
        chosen = [chance.randrange(len(self.inputs)) for _ in range(batch or 1)]
        found = answer(interpreter, np.concatenate([self.inputs[i] for i in chosen]))
        right = np.concatenate([self._right[i] for i in chosen])
        if right.dtype.kind == "f":
            same = np.allclose(found, right, rtol=1e-4, atol=1e-5)
        else:
            same = np.array_equal(found, right)
        if not same:
            raise AssertionError(f"{self.name}: wrong answer for inputs {chosen}: {found}")


def answer(interpreter: Interpreter, x: NDArray[Any]) -> NDArray[Any]:
    """Return a model's output for *x*; the model has one input and one output."""
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    found: NDArray[Any] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return found


def counting_model() -> bytes:
    """Return a model that counts from its input, ``[1] int32``, up to 2,000,000,000."""
    i, y, below = tensor((1,), "INT32"), tensor((1,), "INT32"), tensor((1,), "BOOL")
    end, one = constant(np.array([2_000_000_000], np.int32)), constant(np.array([1], np.int32))
    loop = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    return model_of(
        Graph([i], [y], [Op("WHILE", [i], [y], loop)]),
        Graph([i], [below], [Op("LESS", [i, end], [below], LessOptions())]),
        Graph([i], [y], [Op("ADD", [i, one], [y], AddOptions())]),
    )


def subjects(seed: int) -> list[Subject]:
    """Return new subjects; their inputs differ with *seed*."""
    found = [
        Subject(
            name, (MODELS / f"{name}.tflite").read_bytes(), seed=seed, resizable=name == "sines"
        )
        for name in ("digits_float", "digits_int8", "sines")  # with one input and one output
    ]
    near = [np.array([2_000_000_000 - n], np.int32) for n in range(INPUTS)]
    return [*found, Subject("counting", counting_model(), inputs=near)]
