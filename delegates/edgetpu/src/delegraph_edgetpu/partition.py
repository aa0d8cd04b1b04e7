"""Converts the mapped part of a model to an executable."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from delegraph.errors import DelegraphError, NodeError
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.executable import Executable
from delegraph_edgetpu.operator_cost import multiply_adds
from delegraph_edgetpu.parameter_layout import parameter_sizes


def executable_of(
    model: bytes, calls: Sequence[Call], caching_token: int, free: int, runtime_version: int
) -> Executable:
    """Return a part of a model as an executable, which the custom operator contains.

    Args:
        model: bytes of the part as a model.
        calls: operators of the part.
        caching_token: token shared by all parts that are compiled together.
        free: bytes of the cache that are free for the part.
        runtime_version: oldest runtime version that must be able to run the part.
    """
    sizes = parameter_sizes(calls).values()
    return Executable(
        model,
        caching_token,
        sum(sizes),
        runtime_version,
        fitting(sizes, free),
        sum(map(multiply_adds, calls)),
    )


def fitting(sizes: Iterable[int], free: int) -> int:
    """Return the number of bytes of parameters that fit into *free* bytes of the chip's cache.

    Tensors, whose bytes are *sizes* in the order of use, are cached only as a whole.

    >>> fitting([3, 5, 2], 6)
    5
    """
    cached = 0
    for size in sizes:
        if cached + size <= free:
            cached += size
    return cached


def token_of(models: Iterable[bytes]) -> int:
    """Return a caching token computed from *models*, parts that are compiled together."""
    digest = hashlib.blake2b(digest_size=8)
    for model in models:
        digest.update(hashlib.sha256(model).digest())
    return int.from_bytes(digest.digest(), "little") or 1


def obstacle_to(model: bytes, nodes: Sequence[int]) -> str | None:
    """Return the reason why Delegraph's kernels cannot prepare a part; None if they can.

    *nodes* has, for each operator of the part, its index in the source model.
    """
    from delegraph import Interpreter

    try:
        with Interpreter(model_content=model, delegates=[]) as interpreter:
            interpreter.allocate_tensors()
    except NodeError as error:
        return f"node {nodes[error.node_index]} ({error.op}): {error.__cause__ or error}"
    except DelegraphError as error:
        return str(error)
    return None
