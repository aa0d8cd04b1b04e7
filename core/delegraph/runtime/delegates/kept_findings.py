"""Findings about the nodes of models, stored in the cache by an earlier process.

The check of nodes prepares a kernel for each node, which may take most of the time before the first
result. Its findings depend only on the model file, the shapes, and the code of the kernels.
Findings with an error are not stored, so errors always come from the kernels. Findings that depend
on users' kernels, or on values that a kernel has computed, are not stored either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.hashing import code_state, sha256
from delegraph.operators.op_table import OP_TABLE, has_own_kernel
from delegraph.operators.registration import Registration
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.runtime.delegates.node_facts import Findings, KnownTensor
from delegraph.runtime.execution.steps import Step
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType

NAMESPACE, VERSION = "checked-nodes", "1"

LEAST_NODES = 8
"""Least number of nodes of a subgraph whose findings are stored."""

MOST_BYTES = 256 << 20
"""Size in bytes of the largest model whose digest is computed."""

MOST_FILES = 16
"""Largest number of files of a subgraph; changing shapes must not fill the disk."""

DECIDING = ("arithmetic", "delegation", "graph", "kernels", "operators", "runtime", "schema")
"""Folders of the package whose code findings, or decisions of delegates, depend on."""


class KeptFindings:
    """Cache of the check of one subgraph's nodes: which are rejected, and which shapes are known.

    Args:
        subgraph: the subgraph.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        self._cache: BlobCache | None = None  # cache for the present findings
        self._key = ""
        self._written = 0

    def find(self, nodes: Sequence[Step]) -> Findings | None:
        """Return the findings about nodes with the present shapes; None if none are kept.

        Tensors get the element types that nodes have decided, as after a check.
        """
        self._cache = None
        digest = self._subgraph.session.model_digest if self._is_worth_it(nodes) else None
        if digest is None:
            return None
        package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
        try:
            state = code_state(package, DECIDING)
        except OSError:  # the package is an archive
            return None
        self._key = self._digest(f"{digest} {state}", nodes)
        self._cache = BlobCache(NAMESPACE, VERSION, self._subgraph.session.cache_dir)
        content = self._cache.read(self._key)
        if content is None:
            return None
        tensors = self._subgraph.tensors
        findings = _read(content, tensors)
        if findings is not None:
            findings.give_types(nodes, tensors)
            self._cache = None
        return findings

    def keep(self, findings: Findings) -> None:
        """Write *findings* of a new check to the cache, after :meth:`find` returned None."""
        cache, self._cache = self._cache, None
        is_plain = not findings.errors and not findings.custom_errors
        is_plain = is_plain and not any(known.digest for known in findings.known.values())
        if cache is not None and is_plain and self._written < MOST_FILES:
            self._written += 1
            cache.keep(self._key, written(findings))

    def _is_worth_it(self, nodes: Sequence[Step]) -> bool:
        tensors, content = self._subgraph.tensors, self._subgraph.session.model.content
        return (
            len(nodes) >= LEAST_NODES
            and len(content) <= MOST_BYTES
            and all(_is_own(registration) for _, registration in nodes)
            and not any(t.allocation_type is AllocationType.PERSISTENT_RO for t in tensors)
        )

    def _digest(self, text: str, nodes: Sequence[Step]) -> str:
        """Hash *text*, *nodes*, tensors and memory limit: all that the findings depend on."""
        subgraph = self._subgraph
        limit = subgraph.session.memory_limit
        about = (text, subgraph.spec.index, subgraph.context.numerics, limit.bytes, limit.copies)
        found = sha256(repr((about, limit.is_large_model)).encode())
        numbers = [node.index for node, _ in nodes]
        for tensor in subgraph.tensors:
            kind = int(tensor.allocation_type)
            numbers += (int(tensor.type), kind, tensor.is_variable, len(tensor.shape))
            numbers += tensor.shape
        found.update(np.array(numbers, np.int64).data)
        return found.hexdigest()


def _is_own(registration: Registration) -> bool:
    """Whether *registration* is a kernel of Delegraph that no plugin or user has replaced."""
    if OP_TABLE.is_declared(registration):  # not imported yet, so no other module has this name
        return True
    is_of_table = has_own_kernel(registration)
    return is_of_table and registration.prepare.__module__.startswith("delegraph.kernels.")


def written(findings: Findings) -> bytes:
    """Convert results of a check of nodes to the bytes of a cache file: 64-bit integers."""
    numbers = [len(findings.left_open), *sorted(findings.left_open)]
    for index, known in sorted(findings.known.items()):
        numbers += (index, int(known.type), len(known.shape), *known.shape)
    return np.array(numbers, "<i8").tobytes()


def _read(content: bytes, tensors: Sequence[Tensor]) -> Findings | None:
    """Convert *content*, a cache file, to results of a check; None if it does not fit *tensors*."""
    if len(content) % 8:
        return None
    numbers: list[int] = np.frombuffer(content, "<i8").tolist()
    try:
        count = numbers[0]
        left_open = frozenset(numbers[1 : 1 + count])
        known = dict(_known(numbers[1 + count :], tensors))
    except (IndexError, ValueError):
        return None
    return Findings({}, known, left_open)


def _known(numbers: list[int], tensors: Sequence[Tensor]) -> Iterator[tuple[int, KnownTensor]]:
    place = 0
    while place < len(numbers):
        index, kind, rank = numbers[place : place + 3]
        place += 3 + rank
        shape: tuple[Any, ...] = tuple(numbers[place - rank : place])
        if rank < 0 or index < 0 or len(shape) != rank or min(shape, default=0) < 0:
            raise ValueError
        known = tensors[index].is_constant_or_persistent
        yield index, KnownTensor(shape, TensorType(kind), known)
