"""Kept programs and claims of one delegate: what it asks before it decides anything.

Programs that were prepared in this process are remembered as well, so that a resize back and forth
decides nothing again. Files go to Delegraph's cache, namespace ``numba_cpu-programs``.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from delegraph import DelegateContext, DelegateParams, Rejection
from delegraph.delegation import BlobCache
from delegraph_numba_cpu.kept import claims, keys
from delegraph_numba_cpu.kept.program_file import IS_USABLE, UnfitFile
from delegraph_numba_cpu.kept.reading import Host, read
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.working_memory import WorkingMemory

NAMESPACE = "numba_cpu-programs"

VARIABLE = "DELEGRAPH_NUMBA_KEEP"
"""Environment variable: 0 lets no program be kept, nor any that is kept be used."""

LEAST_NODES = 4
"""Nodes of a subgraph that is worth files; the models that tests generate have fewer."""

MOST_FILES = 16
"""Files of a partition or a subgraph; shapes that change at each invoke must not fill the disk."""

MOST_BYTES = 256 << 20
"""Size of the largest program that is kept: larger ones would crowd out all else in the cache."""

MOST_PROGRAMS = 4
"""Programs of a partition that are remembered in the process, the present one included."""


def is_wanted(kept_programs: bool) -> bool:
    """Return whether programs may be kept, by the option and the environment."""
    return kept_programs and IS_USABLE and os.environ.get(VARIABLE, "") != "0"


def cache_of(context: DelegateContext) -> BlobCache | None:
    """Return the cache of programs; None if nothing can be kept here."""
    version = keys.version()
    return None if version is None else context.cache(NAMESPACE, version)


class KeptClaims:
    """Answers about the nodes of one subgraph, from the cache or for it.

    Args:
        context: the subgraph.
        options: numbers and texts that claims depend on.
        before: the answers for other shapes; None for the first ones.

    Attributes:
        is_worth_it: whether files are read and written for this subgraph.
        files: number of files that have been kept.
    """

    def __init__(
        self, context: DelegateContext, options: Sequence[object], before: KeptClaims | None = None
    ) -> None:
        self.files: int = 0 if before is None else before.files
        self._plan = context.get_execution_plan()
        self.is_worth_it = len(self._plan) >= LEAST_NODES
        self._cache: BlobCache | None = None
        self._key, self._last = "", -1
        self._new: dict[int, Rejection | None] = {}
        self._known: claims.Answers = {}
        cache = cache_of(context) if self.is_worth_it else None
        model = None if cache is None else keys.model_digest(context)
        if cache is None or model is None:
            return
        refused = context.refused_nodes
        self._last = next((index for index in reversed(self._plan) if index not in refused), -1)
        self._cache = cache
        self._key = "claims " + keys.claims_key(context, model, options).hex()
        content = cache.read(self._key)
        found = None if content is None else claims.read(content, self._plan)
        if found is not None:
            self._known, self._cache = found, None

    def known(self, node: int) -> bool | Rejection | None:
        """Return the kept answer about a node; None if there is none."""
        if node not in self._known:
            return None
        found = self._known[node]
        return True if found is None else found

    def add(self, node: int, answer: bool | Rejection) -> None:
        """Take note of a new answer, and keep all once the last node was asked about."""
        if self._cache is None:
            return
        self._new[node] = answer if isinstance(answer, Rejection) else None
        if node == self._last:
            content = claims.written(self._new, self._plan)
            if content is not None and self.files < MOST_FILES:
                self.files += 1
                self._cache.keep(self._key, content)
            self._cache = None


class Maker(NamedTuple):
    """What makes the programs of a delegate in one subgraph.

    Attributes:
        options: numbers and texts that programs depend on, besides shapes.
        workers: how many threads will run a program.
        library: has the kernels.
        working_memory: shared with other programs.
    """

    options: tuple[object, ...]
    workers: int
    library: Library
    working_memory: WorkingMemory


class KeptPrograms:
    """Programs of one partition, by what they were made for.

    Args:
        params: the partition.
        is_wanted: whether there may be files.
    """

    def __init__(self, params: DelegateParams, is_wanted: bool) -> None:
        self._nodes = params.nodes_to_replace
        self._outputs = params.output_tensors
        self._border = (*params.input_tensors, *params.output_tensors)
        self._is_wanted = is_wanted
        self._programs: OrderedDict[bytes, Program] = OrderedDict()
        self._written = 0

    def find(self, context: DelegateContext, maker: Maker) -> Program | None:
        """Return the program for the present shapes, or None if there is none.

        One in a file that is damaged or foreign is none, and the log says why.
        """
        self._cache = cache_of(context) if self._is_wanted else None
        model = None if self._cache is None else keys.model_digest(context)
        if model is None:
            self._cache = None
        options = (*maker.options, maker.workers, maker.library.level.name)
        self._key = keys.program_key(context, model or "", self._nodes, self._border, options)
        found = self._programs.get(self._key)
        if found is None and self._cache is not None:
            found = self._read(context, maker, self._cache)
        if found is not None:
            self._remember(found)
        return found

    def add(self, program: Program) -> None:
        """Keep the program that was made because :meth:`find` has found none."""
        self._remember(program)
        if self._cache is None or self._written >= MOST_FILES:
            return
        from delegraph_numba_cpu.kept.writing import written  # here: once for each program

        self._written += 1
        try:
            content = written(program, self._key)
        except MemoryError:
            return
        if len(content) <= MOST_BYTES:
            self._cache.keep(f"program {self._key.hex()}", content)

    def _read(self, context: DelegateContext, maker: Maker, cache: BlobCache) -> Program | None:
        content = cache.map(f"program {self._key.hex()}")
        if content is None:
            return None
        host = Host(
            context.tensors,
            self._nodes,
            self._border,
            self._outputs,
            maker.workers,
            maker.library,
            maker.working_memory,
        )
        try:
            return read(content, self._key, host)
        except UnfitFile as error:
            import logging  # here: few files are unfit

            logger = logging.getLogger(__name__)
            logger.info("a kept program of numba_cpu is made again: %s", error)
            return None

    def _remember(self, program: Program) -> None:
        for other in self._programs.values():
            if other is not program:
                other.release()
        self._programs[self._key] = program
        self._programs.move_to_end(self._key)
        if len(self._programs) > MOST_PROGRAMS:
            self._programs.popitem(last=False)
