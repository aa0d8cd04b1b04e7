"""Digests of everything that kept programs and claims depend on.

The host knows the digest of the model file, which covers operators, options, quantization and
constants. The digests here also cover shapes, types, and values that were computed while preparing.
They cover the versions of the code, the level and the delegate's options, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import delegraph
from delegraph.delegation import code_state, sha256
from delegraph_numba_cpu.kept.program_file import IS_USABLE
from delegraph_numba_cpu.library.prebuilt import PACKAGE, usable_manifest

if TYPE_CHECKING:
    from delegraph import DelegateContext, Tensor

NAMESPACE = "numba_cpu-programs"
"""Name of kept programs and claims in the cache and in model files."""

VARIABLE = "DELEGRAPH_NUMBA_KEEP"
"""Environment variable; 0 means that programs are neither stored nor read."""

DECIDING = ("arithmetic", "delegation", "graph", "kernels", "operators", "runtime", "schema")
"""Folders of the core that claims and programs depend on."""

COMPUTED = 5
"""Value of ``AllocationType.PERSISTENT_RO``: tensors whose values a node computed during
prepare."""


def is_wanted(kept_programs: bool) -> bool:
    """Whether the delegate's option and the environment allow programs to be stored in files.

    Args:
        kept_programs: value of the option ``kept_programs``.
    """
    return kept_programs and IS_USABLE and os.environ.get(VARIABLE, "") != "0"


def model_digest(context: DelegateContext) -> str | None:
    """Return the digest of the file of the model that *context* belongs to.

    The result is None in hosts that do not know the file.
    """
    return getattr(context, "model_digest", None)


def claims_key(context: DelegateContext, model: str, options: Sequence[object]) -> bytes:
    """Return the digest of everything that decides which nodes the delegate claims.

    Args:
        context: the subgraph, with the delegates that were applied before.
        model: digest of the model file.
        options: the delegate's settings that claims depend on, as numbers and texts.
    """
    parts = (model, context.subgraph_index, context.numerics, *options)
    return _digest(parts, context, context.get_execution_plan(), context.tensors)


def program_key(
    context: DelegateContext,
    model: str,
    nodes: Sequence[int],
    border: Sequence[int],
    options: Sequence[object],
) -> bytes:
    """Return the digest of everything that the program of a partition depends on.

    Args:
        context: the subgraph; the shapes of the partition's tensors are known.
        model: digest of the model file.
        nodes: indices of the partition's nodes.
        border: indices of the partition's inputs and outputs.
        options: settings that a program depends on, such as the number of threads, as numbers and
            texts.
    """
    used = set(border)
    for index in nodes:
        node, _ = context.get_node_and_registration(index)
        used.update(node.inputs, node.outputs)
    tensors = [context.tensors[index] for index in sorted(used) if index >= 0]
    border_text = " ".join(map(str, border))
    parts = (model, context.subgraph_index, context.numerics, *options, border_text)
    return _digest(parts, context, nodes, tensors)


def _digest(
    parts: Iterable[object],
    context: DelegateContext,
    nodes: Iterable[int],
    tensors: Iterable[Tensor],
) -> bytes:
    """Return a digest of *parts* (texts and numbers), of *nodes*, and of the state of *tensors*."""
    texts = [str(part) for part in parts]
    numbers: list[int] = []
    for index in nodes:
        node, registration = context.get_node_and_registration(index)
        texts.append(registration.name)
        numbers += [index, node.delegate is not None, len(node.inputs), len(node.outputs)]
        numbers += [*node.inputs, *node.outputs]
    found = sha256("\n".join(text.replace("\n", " ") for text in texts).encode())
    for tensor in tensors:
        kind = int(tensor.allocation_type)
        shape = tensor.shape
        numbers += [tensor.index, int(tensor.type), kind, tensor.is_variable, len(shape), *shape]
        if kind == COMPUTED and tensor.data is not None:
            found.update(_content(tensor.data))
    found.update(np.array(numbers, np.int64).data)
    return found.digest()


def _content(data: Any) -> Any:
    """Return the value *data* as bytes for a digest; equal values and types give equal bytes."""
    if data.dtype.hasobject:
        return repr(data.tolist()).encode()
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)


@cache
def version() -> str | None:
    """Return a text that changes whenever the code that makes or runs programs changes.

    It has only characters that a cache's version may have. It is None if there is no prebuilt
    library: kernels are then compiled at run time, and nothing is kept. It is also None if the
    sources have no files of their own, as in an archive.
    """
    manifest = usable_manifest()
    if isinstance(manifest, str):
        return None
    try:
        states = (
            code_state(os.path.dirname(delegraph.__file__), DECIDING),
            code_state(PACKAGE, is_edited=manifest.in_place),
        )
    except OSError:  # the package is in an archive
        return None
    state = sha256(repr(states).encode()).hexdigest()
    return f"{manifest.sources[:16]}-{state[:32]}"
