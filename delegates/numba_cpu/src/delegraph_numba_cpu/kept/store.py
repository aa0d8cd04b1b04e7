"""Kept programs and claims of one delegate, which it reads before it decides anything.

Programs that were prepared in this process are remembered as well, so that a resize back and forth
decides nothing again. Others are looked for in the model file, where ``delegraph compile`` puts
them, then in Delegraph's cache, where each preparation does. Both call them ``numba_cpu-programs``.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from delegraph import DelegateContext, DelegateParams, Rejection
from delegraph.delegation import BlobCache, ModelEntries
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
    """Return whether programs may be stored, by the option and the environment."""
    return kept_programs and IS_USABLE and os.environ.get(VARIABLE, "") != "0"


class Places(NamedTuple):
    """Where programs and claims of a model are kept.

    Attributes:
        model: digest of the model.
        cache: files of this user; None while the model is compiled ahead of time.
        entries: in the model file; None if there are none of this delegate.
    """

    model: str
    cache: BlobCache | None
    entries: ModelEntries | None

    def programs(self, key: str) -> Iterator[tuple[memoryview, bool]]:
        """Yield the programs that are stored for *key*, and whether each is in the model file."""
        if self.entries is not None:
            content = self.entries.map(_version_everywhere(), key)
            if content is not None:
                yield content, True
        content = None if self.cache is None else self.cache.map(key)
        if content is not None:
            yield content, False

    def shared_constant(self, name: bytes) -> memoryview | None:
        """Return the constant *name* of the model file, shared by programs; None if missing."""
        if self.entries is None:
            return None
        return self.entries.map(_version_everywhere(), f"constant {name.hex()}")

    def claims(self, key: str) -> Iterator[tuple[bytes, bool]]:
        """Yield the claims that are stored for *key*, and whether each is in the model file."""
        if self.entries is not None:
            content = self.entries.read(_version_everywhere(), key)
            if content is not None:
                yield content, True
        content = None if self.cache is None else self.cache.read(key)
        if content is not None:
            yield content, False

    def keep(self, key: str, content: bytes | Sequence[memoryview]) -> None:
        """Store *content*, which may be in pieces, under *key* for later processes."""
        if self.cache is not None:
            self.cache.keep(key, content)
        elif self.entries is not None:
            whole = content if isinstance(content, bytes) else b"".join(content)
            self.entries.keep(_version_everywhere(), key, whole)


def places_of(context: DelegateContext) -> Places | None:
    """Return the places for the programs of a model; None if nothing can be stored here."""
    model = keys.model_digest(context)
    entries = None if model is None else context.model_entries(NAMESPACE)
    if model is None or (entries is not None and entries.is_writing):
        return None if model is None else Places(model, None, entries)
    version = keys.version()
    if version is None:
        return None
    return Places(model, context.cache(NAMESPACE, version), entries or None)


class KeptClaims:
    """Answers about the nodes of one subgraph, from the cache or for it.

    Args:
        context: the subgraph.
        options: numbers and texts that claims depend on.
        before: the answers for other shapes; None for the first answers.

    Attributes:
        is_worth_it: whether files are read and written for this subgraph.
        files: number of files that have been kept.
        are_from_model: whether the answers were in the model file.
    """

    def __init__(
        self, context: DelegateContext, options: Sequence[object], before: KeptClaims | None = None
    ) -> None:
        self.files: int = 0 if before is None else before.files
        self._plan = context.get_execution_plan()
        self.is_worth_it = len(self._plan) >= LEAST_NODES
        self._key, self._last = "", -1
        self._new: dict[int, Rejection | None] = {}
        self._known: claims.Answers = {}
        self._places = places_of(context) if self.is_worth_it else None
        self.are_from_model = False
        if self._places is None:
            return
        refused = context.refused_nodes
        self._last = next((index for index in reversed(self._plan) if index not in refused), -1)
        self._key = "claims " + keys.claims_key(context, self._places.model, options).hex()
        for content, is_from_model in self._places.claims(self._key):
            found = claims.read(content, self._plan)
            if found is not None:
                self._known, self._places = found, None
                self.are_from_model = is_from_model
                return

    def known(self, node: int) -> bool | Rejection | None:
        """Return the stored answer about *node*; None if there is none."""
        if node not in self._known:
            return None
        found = self._known[node]
        return True if found is None else found

    def add(self, node: int, answer: bool | Rejection) -> None:
        """Add a new answer; store all answers once every node has one."""
        if self._places is None:
            return
        self._new[node] = answer if isinstance(answer, Rejection) else None
        if node == self._last:
            content = claims.written(self._new, self._plan)
            if content is not None and self.files < MOST_FILES:
                self.files += 1
                self._places.keep(self._key, content)
            self._places = None


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
    """Programs of one partition, by shapes and other conditions.

    Args:
        params: the partition.
        is_wanted: whether there may be files.

    Attributes:
        in_model: about the program in the model file, once :meth:`find` has looked: whether it is
            used, and why not; empty if the file has no programs.
    """

    def __init__(self, params: DelegateParams, is_wanted: bool) -> None:
        self._nodes = params.nodes_to_replace
        self._outputs = params.output_tensors
        self._border = (*params.input_tensors, *params.output_tensors)
        self._is_wanted = is_wanted
        self.in_model = ""
        self._programs: OrderedDict[bytes, Program] = OrderedDict()
        self._written = 0

    def find(self, context: DelegateContext, maker: Maker) -> Program | None:
        """Return the program for the present shapes, or None if there is none.

        One in a file that is damaged or foreign is none, and the log says why.
        """
        self._places = places_of(context) if self._is_wanted else None
        model = "" if self._places is None else self._places.model
        options = (*maker.options, maker.workers, maker.library.level.name)
        self._key = keys.program_key(context, model, self._nodes, self._border, options)
        found = self._programs.get(self._key)
        if found is None and self._places is not None:
            found = self._read(context, maker, self._places)
        if found is not None:
            self._remember(found)
        return found

    def add(self, program: Program) -> None:
        """Keep the program that was made because :meth:`find` has found none."""
        self._remember(program)
        if self._places is None or self._written >= MOST_FILES:
            return
        from delegraph_numba_cpu.kept.writing import pieces_of  # here: once for each program

        self._written += 1
        shared: dict[bytes, bytes] | None = {} if self._places.cache is None else None
        try:
            content = pieces_of(program, self._key, shared)
        except MemoryError:
            return
        if sum(map(len, content)) <= MOST_BYTES:
            self._places.keep(f"program {self._key.hex()}", content)
            for name, constant in (shared or {}).items():
                self._places.keep(f"constant {name.hex()}", constant)

    def _read(self, context: DelegateContext, maker: Maker, places: Places) -> Program | None:
        if places.cache is None:
            return None  # it is made for the file
        if places.entries is not None:
            self.in_model = _missing(places.entries, maker)
        host = Host(
            context.tensors,
            self._nodes,
            self._border,
            self._outputs,
            maker.workers,
            maker.library,
            maker.working_memory,
            places.shared_constant,
        )
        for content, is_from_model in places.programs(f"program {self._key.hex()}"):
            try:
                found = read(content, self._key, host)
            except UnfitFile as error:
                self._say_unfit(error, is_from_model=is_from_model)
            else:
                self.in_model = "its program is in the file" if is_from_model else self.in_model
                return found
        return None

    def _say_unfit(self, error: UnfitFile, *, is_from_model: bool) -> None:
        import logging  # here: few files are unfit

        logger = logging.getLogger(__name__)
        if not is_from_model:
            logger.info("a kept program of numba_cpu is made again: %s", error)
            return
        self.in_model = f"the program in the file is not used: {error}"
        logger.warning("%s; numba_cpu makes it again", self.in_model)

    def _remember(self, program: Program) -> None:
        for other in self._programs.values():
            if other is not program:
                other.release()
        self._programs[self._key] = program
        self._programs.move_to_end(self._key)
        if len(self._programs) > MOST_PROGRAMS:
            self._programs.popitem(last=False)


def _missing(entries: ModelEntries, maker: Maker) -> str:
    """Return the reason why no program in a model file fits."""
    if _version_everywhere() not in entries.versions:
        return "the programs in the file are of another version: compile the model again"
    threads = f"{maker.workers} thread{'s' * (maker.workers != 1)}"
    level = maker.library.level.name
    return f"the file has no program for these weights and shapes, {level}, {threads}"


def _version_everywhere() -> str:
    from delegraph_numba_cpu.kept import code_digest  # here: few model files have programs

    return code_digest.version_everywhere()
