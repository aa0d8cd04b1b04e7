"""Derivatives of the outputs of a partition with respect to its inputs.

::

    delegate = JaxDelegate(JaxOptions())
    interpreter = Interpreter(model_path="model.tflite", experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    [partition] = delegate.partitions  # the whole model, if all of its nodes were taken
    [slope] = gradients(partition, [image])

A partition is a function of JAX arrays, so ``jax.vmap``, ``jax.jit`` and other transformations also
accept it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.errors import ArgumentError, OperatorError
from delegraph_jax.traced import TracedPartition


def gradients(
    partition: TracedPartition,
    inputs: Sequence[ArrayLike],
    weights: Sequence[ArrayLike] | None = None,
) -> list[NDArray[Any] | None]:
    """Return the derivative of the weighted sum of all output elements by each input element.

    Args:
        partition: partition of a delegate whose interpreter has allocated its tensors.
        inputs: arrays for ``partition.inputs``, in the allocated shapes.
        weights: for each of ``partition.outputs`` an array of its shape; by default all weights are
            1. Weights of outputs that are no floats are ignored.

    Returns:
        For each input an array of its shape and type; None for an input that is no float.

    Raises:
        ArgumentError: the number of inputs or weights is wrong.
        OperatorError: the partition cannot be computed with these inputs, or an output depends on
            them through a WHILE: XLA does not report the number of iterations, so reverse mode is
            impossible. ``jax.jvp`` and ``jax.jacfwd`` work, because they use forward mode.
    """
    _require_count("inputs", inputs, partition.inputs)
    with jax.enable_x64(True):
        arrays = [jnp.asarray(each) for each in inputs]
        floats = [i for i, array in enumerate(arrays) if _is_float(array)]

        def of_floats(*values: Any) -> list[Any]:
            arguments = list(arrays)
            for i, value in zip(floats, values, strict=True):
                arguments[i] = value
            return partition(*arguments)

        outputs, pull_back = jax.vjp(of_floats, *[arrays[i] for i in floats])
        if weights is not None:
            _require_count("weights", weights, outputs)
        with _loops_named():
            slopes = pull_back(_cotangents(outputs, weights))
        found: list[NDArray[Any] | None] = [None] * len(arrays)
        for i, slope in zip(floats, slopes, strict=True):
            found[i] = np.asarray(slope)
        return found


@contextmanager
def _loops_named() -> Iterator[None]:
    """Context in which JAX's error about derivatives of loops is raised with the name WHILE."""
    try:
        yield
    except ValueError as error:
        if "Reverse-mode differentiation" not in str(error):
            raise
        raise OperatorError(
            "the partition has a WHILE, through which JAX has no derivatives backwards; it has "
            "them forwards: jax.jvp(partition, inputs, directions), jax.jacfwd(partition)"
        ) from error


def _require_count(what: str, given: Sequence[Any], expected: Sequence[Any]) -> None:
    if len(given) != len(expected):
        raise ArgumentError(f"{len(given)} {what}, expected {len(expected)}")


def _is_float(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def _cotangents(outputs: Sequence[Any], weights: Sequence[ArrayLike] | None) -> list[Any]:
    """Return *weights* as JAX cotangents; integer outputs get zeros of JAX's type float0."""
    found = []
    for i, output in enumerate(outputs):
        if not _is_float(output):
            found.append(np.zeros(output.shape, jax.dtypes.float0))
        elif weights is None:
            found.append(jnp.ones_like(output))
        else:
            found.append(jnp.broadcast_to(jnp.asarray(weights[i], output.dtype), output.shape))
    return found
