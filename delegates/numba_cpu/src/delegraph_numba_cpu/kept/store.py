"""Kept programs and claims of one delegate, which looks here before it lowers or claims nodes.

Programs of this process stay in memory, so that resizing back to earlier shapes lowers nothing
again. Other programs are read from the model file, where ``delegraph compile`` writes them, or else
from Delegraph's cache, where each preparation writes them. Their name in both is
``numba_cpu-programs``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from delegraph import DelegateContext, DelegateParams, Rejection
from delegraph.delegation import BlobCache, ModelEntries, sha256
from delegraph.lazy_dataclass import dataclass
from delegraph_numba_cpu.kept import claims, keys
from delegraph_numba_cpu.kept.program_file import UnfitFile
from delegraph_numba_cpu.kept.reading import Host, read
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.working_memory import WorkingMemory

LEAST_NODES = 4
"""Least number of nodes of a subgraph that gets files; models that tests generate have fewer."""

MOST_FILES = 16
"""Largest number of files of a partition or subgraph; changing shapes must not fill the disk."""

MOST_BYTES = 256 << 20
"""Size in bytes of the largest stored program; larger ones would displace all other entries."""

MOST_PROGRAMS = 4
"""Largest number of a partition's programs in memory, including the present one."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places where the programs and the claims of a model are stored: model file and cache.

    Attributes:
        model: digest of the model.
        cache: the user's cache; None while the model is compiled ahead of time.
        entries: this delegate's entries in the model file; None if it has none.
    """

    model: str
    cache: BlobCache | None
    entries: ModelEntries | None

    def programs(self, key: str) -> Iterator[tuple[memoryview, bool]]:
        """Yield each stored program's content, and whether it is from the model file.

        Args:
            key: name of the entry, which stands for everything that the program depends on.
        """
        if self.entries is not None:
            content = self.entries.map(_version_everywhere(), key)
            if content is not None:
                yield content, True
        content = None if self.cache is None else self.cache.map(key)
        if content is not None:
            yield content, False

    def shared_constant(self, name: bytes) -> memoryview | None:
        """Return a constant in the model file that several programs share; None if it is missing.

        Args:
            name: SHA-256 of the constant.
        """
        if self.entries is None:
            return None
        return self.entries.map(_version_everywhere(), f"constant {name.hex()}")

    def claims(self, key: str) -> Iterator[tuple[bytes, bool]]:
        """Yield stored records of claimed nodes, and whether each is from the model file.

        Args:
            key: name of the entry, which stands for the model and the options.
        """
        if self.entries is not None:
            content = self.entries.read(_version_everywhere(), key)
            if content is not None:
                yield content, True
        content = None if self.cache is None else self.cache.read(key)
        if content is not None:
            yield content, False

    def keep(
        self, key: str, content: bytes | Sequence[memoryview], digest: str | None = None
    ) -> None:
        """Store *content* for later processes: in the cache, or if there is none, the model file.

        Args:
            key: name of the entry.
            content: the bytes, maybe as a list of pieces.
            digest: hexadecimal digits for the cache file's name; None for the content's SHA-256.
        """
        if self.cache is not None:
            self.cache.keep(key, content, digest)
        elif self.entries is not None:
            whole = content if isinstance(content, bytes) else b"".join(content)
            self.entries.keep(_version_everywhere(), key, whole)


def places_of(context: DelegateContext) -> Places | None:
    """Return the places of a model's stored programs; None if nothing can be stored.

    Args:
        context: a subgraph of the model.
    """
    model = keys.model_digest(context)
    entries = None if model is None else context.model_entries(keys.NAMESPACE)
    if model is None or (entries is not None and entries.is_writing):
        return None if model is None else Places(model, None, entries)
    version = keys.version()
    if version is None:
        return None
    return Places(model, context.cache(keys.NAMESPACE, version), entries or None)


class KeptClaims:
    """Which nodes of a subgraph the delegate claims and rejects, kept for later processes.

    Args:
        context: the subgraph.
        options: the delegate's settings that claims depend on, as numbers and texts.
        before: the claims and rejections for other shapes of this subgraph; None if these are the
            first.

    Attributes:
        is_worth_it: whether files are read and written for this subgraph.
        files: number of files that have been stored.
        are_from_model: whether the claims and rejections were read from the model file.
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
        """Return the stored answer for a node: True if it is claimed, or its rejection.

        The result is None if no answer is stored.

        Args:
            node: index of the node.
        """
        if node not in self._known:
            return None
        found = self._known[node]
        return True if found is None else found

    def add(self, node: int, answer: bool | Rejection) -> None:
        """Note that a node is claimed or rejected; the file is written once all nodes are known.

        Args:
            node: index of the node.
            answer: True if the delegate claims it, else the rejection.
        """
        if self._places is None:
            return
        self._new[node] = answer if isinstance(answer, Rejection) else None
        if node == self._last:
            content = claims.written(self._new, self._plan)
            if content is not None and self.files < MOST_FILES:
                self.files += 1
                self._places.keep(self._key, content)
            self._places = None


@dataclass(frozen=True, slots=True)
class Maker:
    """Settings and memory with which the programs of one subgraph are made.

    Attributes:
        options: settings that programs depend on besides shapes, as numbers and texts.
        workers: number of threads that run a program.
        library: the compiled kernels.
        working_memory: the memory that all programs of the subgraph share.
    """

    options: tuple[object, ...]
    workers: int
    library: Library
    working_memory: WorkingMemory


class KeptPrograms:
    """Compiled programs of one partition, one for each combination of shapes and settings.

    Args:
        params: the partition.
        is_wanted: whether programs may be stored in files, and read from them.

    Attributes:
        in_model: note for the user, set by :meth:`find`. It says whether the program in the model
            file is used, or why not. It is empty if the model file has no programs.
        key: key of the present program, set by :meth:`find`.
    """

    def __init__(self, params: DelegateParams, is_wanted: bool) -> None:
        self._nodes = params.nodes_to_replace
        self._outputs = params.output_tensors
        self._border = (*params.input_tensors, *params.output_tensors)
        self._is_wanted = is_wanted
        self.in_model = ""
        self._programs: OrderedDict[bytes, Program] = OrderedDict()
        self._written = 0
        self.key = b""
        self._places: Places | None = None

    @property
    def is_in_cache(self) -> bool:
        """Whether the present program is stored in the user's cache, and nowhere else."""
        places = self._places
        return places is not None and places.cache is not None and places.entries is None

    def find(self, context: DelegateContext, maker: Maker) -> Program | None:
        """Return the program for the present shapes, from memory or a file; None if there is none.

        A program in a damaged or foreign file is not used, and the log says why.

        Args:
            context: the subgraph; all shapes are known.
            maker: settings and memory for the program.
        """
        self._places = places_of(context) if self._is_wanted else None
        model = "" if self._places is None else self._places.model
        options = (*maker.options, maker.workers, maker.library.level.name)
        self.key = keys.program_key(context, model, self._nodes, self._border, options)
        found = self._programs.get(self.key)
        if found is None and self._places is not None:
            found = self._read(context, maker, self._places)
        if found is not None:
            self._remember(found)
        return found

    def add(self, program: Program) -> None:
        """Store *program*, which was made because :meth:`find` returned None.

        It stays in memory. It is also written to a file if files are wanted, and if it is not too
        large.
        """
        self._remember(program)
        if self._places is None or self._written >= MOST_FILES:
            return
        # Imported here: it is needed once for each program.
        from delegraph_numba_cpu.kept.writing import pieces_of

        self._written += 1
        shared: dict[bytes, bytes] | None = {} if self._places.cache is None else None
        try:
            content = pieces_of(program, self.key, shared)
        except MemoryError:
            return
        if sum(map(len, content)) <= MOST_BYTES:
            # The first piece has digests of all others.
            digest = sha256(content[0]).hexdigest()
            self._places.keep(f"program {self.key.hex()}", content, digest)
            for name, constant in (shared or {}).items():
                self._places.keep(f"constant {name.hex()}", constant)

    def _read(self, context: DelegateContext, maker: Maker, places: Places) -> Program | None:
        if places.cache is None:
            return None  # the program is made for a model file
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
        for content, is_from_model in places.programs(f"program {self.key.hex()}"):
            try:
                found = read(content, self.key, host)
            except UnfitFile as error:
                self._say_unfit(error, is_from_model=is_from_model)
            else:
                self.in_model = "its program is in the file" if is_from_model else self.in_model
                return found
        return None

    def _say_unfit(self, error: UnfitFile, *, is_from_model: bool) -> None:
        import logging  # imported here: few files are unfit

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
        self._programs[self.key] = program
        self._programs.move_to_end(self.key)
        if len(self._programs) > MOST_PROGRAMS:
            self._programs.popitem(last=False)


def _missing(entries: ModelEntries, maker: Maker) -> str:
    """Return the reason why no program in a model file fits, as text for the user.

    *entries* are those of this delegate; a program would have to fit the settings of *maker*.
    """
    if _version_everywhere() not in entries.versions:
        return "the programs in the file are of another version: compile the model again"
    threads = f"{maker.workers} thread{'s' * (maker.workers != 1)}"
    level = maker.library.level.name
    return (
        f"no program in the file is for this processor's level {level}, {threads} and these "
        f"shapes; 'delegraph compile' with --cpu {level} --threads {maker.workers} adds it"
    )


def _version_everywhere() -> str:
    from delegraph_numba_cpu.kept import code_digest  # imported here: few model files have programs

    return code_digest.version_everywhere()
