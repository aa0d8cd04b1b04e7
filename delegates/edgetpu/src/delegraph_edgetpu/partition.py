"""The mapped part of a model as a separate model, to be packed into an executable."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from delegraph.errors import DelegraphError, NodeError
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.executable import Executable
from delegraph_edgetpu.operator_cost import multiply_adds, parameter_sizes


def executable_of(
    model: bytes, calls: Sequence[Call], caching_token: int, free: int, runtime_version: int
) -> Executable:
    """Return the executable of a part.

    Args:
        model: the part.
        calls: its operators.
        caching_token: shared by what is compiled together.
        free: bytes of the cache that are left for it.
        runtime_version: the oldest one that has to run it.
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
    """Number of parameter bytes that fit on the chip, as whole tensors in order of use.

    >>> fitting([3, 5, 2], 6)
    5
    """
    cached = 0
    for size in sizes:
        if cached + size <= free:
            cached += size
    return cached


def token_of(models: Iterable[bytes]) -> int:
    """Return a caching token for parts that are compiled together; it depends on the parts only."""
    digest = hashlib.blake2b(digest_size=8)
    for model in models:
        digest.update(hashlib.sha256(model).digest())
    return int.from_bytes(digest.digest(), "little") or 1


def obstacle_to(model: bytes, nodes: Sequence[int]) -> str | None:
    """Return why Delegraph's kernels cannot prepare a part; None when they can.

    Args:
        model: the part.
        nodes: index in the source of each of the part's operators.
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
