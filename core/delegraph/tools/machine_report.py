"""Properties of this machine that Delegraph depends on, and problems found."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from delegraph.delegation.blob_cache import LIMIT
from delegraph.delegation.cache_entries import cache_entries
from delegraph.delegation.cache_files import CacheFolder
from delegraph.delegation.configuration import CACHE_VARIABLE, cache_folder, configuration
from delegraph.operators.memory_limit import physical_memory
from delegraph.plugins.address import canonical_name
from delegraph.tools.plugin_check import Finding, Level

RUNTIMES = ("ai-edge-litert", "tflite-runtime", "tensorflow")
"""Names of the distributions that contain an official interpreter."""

_USES = {
    "beam": "RunInference in Beam pipelines",
    "coco": "evaluate detection, for the average precision of COCO",
    "exact": "memory, for the smallest plan of large models",
    "fast": "the default delegate",
    "images": "pictures, of run, predict and evaluate",
    "parquet": "predict with Parquet files",
    "plot": "memory --plot, diff --plot",
    "ray": "batch jobs on Ray",
    "serve": "serve",
    "serve-ray": "serve --replicas, serve --ray-address",
    "sounds": "sounds of another rate than the model's",
    "testing": "test, test-operators",
}
"""Mapping from each of Delegraph's extras to the commands or features that need it."""

PREFIX = "DELEGRAPH_"
"""Beginning of the names of all environment variables that Delegraph and its plugins read."""

SECRET = re.compile("token|key|secret|password", re.IGNORECASE)
"""Pattern of the names of environment variables whose values no report shows."""

PLUGIN_CACHE = re.compile(r"DELEGRAPH_\w+_CACHE")
"""Pattern of the environment variables that name a plugin's own cache folder."""


@dataclass(frozen=True, slots=True)
class Processor:
    """The machine's processor, cores and memory.

    Attributes:
        name: name of the processor, from the system; may be empty.
        machine: instruction set, such as ``x86_64``.
        cores: number of logical cores.
        usable_cores: number of cores that this process may use.
        memory: memory of the machine in bytes.
    """

    name: str
    machine: str
    cores: int
    usable_cores: int
    memory: int


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache folder, which later processes use as well.

    Attributes:
        source: origin of the path: an environment variable, or the platform.
        path: path of the folder; empty if unknown.
        files: number of files in the folder, 0 if it does not exist; for Delegraph's own cache, the
            number of entries that ``delegraph cache list`` shows.
        bytes: size of these files in bytes.
        error: text that says why the folder cannot be used; empty if it can.
        limit: number of bytes that it may hold; None means any.
    """

    source: str
    path: str
    files: int = 0
    bytes: int = 0
    error: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """One of Delegraph's extras, which pip installs on request.

    Attributes:
        name: name of the extra, as in ``pip install delegraph[name]``.
        needed_by: commands or features that need its packages.
        missing: its requirements that are missing or of a wrong version.
    """

    name: str
    needed_by: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MachineReport:
    """Processor, versions and caches of this machine.

    Attributes:
        processor: processor and memory.
        system: operating system, as one line of text.
        python: version and path of the interpreter.
        versions: mapping from each package that Delegraph can use to its version; None if not
            installed.
        caches: the cache folders.
        variables: environment variables that Delegraph and its plugins read.
        extras: Delegraph's extras, with what they lack here.
        imported_from: mapping from Delegraph and each plugin's distribution to the folder of its
            package; see :func:`~delegraph.tools.import_folders.import_folders`.
    """

    processor: Processor
    system: str
    python: str
    versions: dict[str, str | None]
    caches: tuple[Cache, ...]
    variables: dict[str, str]
    extras: tuple[Extra, ...] = ()
    imported_from: Mapping[str, str] = field(default_factory=dict)


def machine_report(distributions: Iterable[str] = ()) -> MachineReport:
    """Return the processor, memory, versions and caches of this machine.

    Requirements of the plugins' *distributions* are listed too.
    """
    return MachineReport(
        processor(),
        platform.platform(),
        f"{platform.python_version()}, {sys.executable}",
        versions(distributions),
        tuple(_caches()),
        own_variables(),
        tuple(_extras()),
    )


def own_variables() -> dict[str, str]:
    """Return the environment variables that are Delegraph's or its plugins' by their names.

    The value of a secret is ``***``.
    """
    names = sorted(name for name in os.environ if name.startswith(PREFIX))
    return {name: "***" if SECRET.search(name) else os.environ[name] for name in names}


def versions(distributions: Iterable[str] = ()) -> dict[str, str | None]:
    """Return the versions of Delegraph's dependencies; None for packages that are not installed.

    What the plugins' *distributions* need is listed as well, and packages of their extras that are
    installed.
    """
    needed = [requirement.name for requirement in _requirements("delegraph")]
    optional = {each.name for each in _optional("delegraph")}
    names = dict.fromkeys(("delegraph", *sorted(needed), *RUNTIMES, *sorted(optional)))
    found = {name: _version(name) for name in names}
    for distribution in distributions:
        required = {canonical_name(each.name) for each in _requirements(distribution)}
        optional = {canonical_name(each.name) for each in _optional(distribution)}
        for name in sorted(required | optional):
            version = _version(name)
            if name in required or version is not None:
                found.setdefault(name, version)
    return found


def check_machine(report: MachineReport, distributions: Iterable[str] = ()) -> Iterator[Finding]:
    """Yield problems: missing packages, wrong versions, unusable caches.

    The requirements of the plugins' *distributions* are checked too.
    """
    for name in dict.fromkeys(("delegraph", *distributions)):
        for requirement in _requirements(name):
            version = _version(requirement.name)
            remedy = f"pip install '{requirement}'"
            if version is None:
                yield Finding(Level.ERROR, name, f"needs {requirement}, which is missing", remedy)
            elif not _is_installed(requirement):
                text = f"needs {requirement}, and {version} is installed"
                yield Finding(Level.ERROR, name, text, remedy)
    for cache in report.caches:
        if cache.error:
            where = f"cache {cache.path}".rstrip()
            remedy = f"{CACHE_VARIABLE}=FOLDER names another; without it all is compiled anew"
            yield Finding(Level.ERROR, where, f"is not used: {cache.error}", remedy)


def _requirements(distribution: str, extra: str = "") -> list[Requirement]:
    """Return the requirements of a distribution, empty if it is unknown.

    Those of one *extra* are included; an empty text means no extra.
    """
    try:
        texts = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    found = [Requirement(text) for text in texts]
    return [r for r in found if r.marker is None or r.marker.evaluate({"extra": extra})]


def _extras() -> Iterator[Extra]:
    """Yield Delegraph's extras, each with its requirements that are not fulfilled."""
    always = {str(each) for each in _requirements("delegraph")}
    for name in _extra_names("delegraph"):
        needed = (r for r in _requirements("delegraph", name) if str(r) not in always)
        missing = tuple(_plain(each) for each in needed if not _is_installed(each))
        yield Extra(name, _USES.get(name, ""), missing)


def _plain(requirement: Requirement) -> str:
    """Text of a requirement without its marker: ``ray[serve]>=2.54``."""
    return str(requirement).partition(";")[0].strip()


def _is_installed(requirement: Requirement) -> bool:
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _optional(distribution: str) -> Iterator[Requirement]:
    """Yield the requirements of a distribution's extras."""
    for extra in _extra_names(distribution):
        yield from _requirements(distribution, extra)


def _extra_names(distribution: str) -> list[str]:
    try:
        return metadata.metadata(distribution).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return []


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def processor() -> Processor:
    """Return the properties of processor and memory."""
    cores = os.cpu_count() or 1
    has_affinity = hasattr(os, "sched_getaffinity")
    usable = len(os.sched_getaffinity(0)) if has_affinity else cores
    return Processor(_processor_name(), platform.machine(), cores, usable, physical_memory())


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        return platform.processor()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor()


def _caches() -> Iterator[Cache]:
    """Yield the cache folders that plugins name, then Delegraph's own."""
    for key in sorted(os.environ):
        if PLUGIN_CACHE.fullmatch(key) and os.environ[key]:
            yield _cache(key, Path(os.environ[key]).absolute())
    yield _user_cache()


def _user_cache() -> Cache:
    configured = configuration()
    source = "the system"
    if os.environ.get(CACHE_VARIABLE):
        source = CACHE_VARIABLE
    elif configured.cache_folder is not None:
        source = f"cache.folder of {configured.path}"
    try:
        found = _cache(source, Path(cache_folder()), _entry_sizes)
        return replace(found, limit=configured.cache_size or LIMIT)
    except OSError as error:
        return Cache("HOME", "", error=error.strerror or str(error))


def _entry_sizes(place: Path) -> list[int]:
    """Return the sizes of a cache's entries in bytes, without its locks and its own notes."""
    return [entry.size for entry in cache_entries(place)]


def _file_sizes(place: Path) -> list[int]:
    """Return the sizes of all files in a folder in bytes."""
    return [file.lstat().st_size for file in place.rglob("*") if file.is_file()]


def _cache(
    source: str, path: Path, sizes_in: Callable[[Path], Sequence[int]] = _file_sizes
) -> Cache:
    """Return the content of the cache at *path*, or the reason why it cannot be used.

    *source* is the setting that names the folder. *sizes_in* returns the size of each file that
    counts.
    """
    try:
        place = Path(CacheFolder(path).place())
        if not os.access(place, os.W_OK | os.X_OK):
            return Cache(source, str(path), error="this user may not write it")
        sizes = sizes_in(place)
    except FileNotFoundError:
        return Cache(source, str(path), error=_cannot_be_made(path))
    except OSError as error:
        where = "" if error.filename in (None, str(path)) else f"{error.filename} "
        return Cache(source, str(path), error=f"{where}{error.strerror or error}")
    return Cache(source, str(path), len(sizes), sum(sizes))


def _cannot_be_made(path: Path) -> str:
    """Text that says why the missing folder *path* cannot be created; empty if it can."""
    parent = next(folder for folder in path.parents if folder.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        return f"this user may not write {parent}"
    try:  # some file systems refuse folders although the user has all rights
        os.rmdir(tempfile.mkdtemp(dir=parent))
    except OSError as error:
        return f"no folder can be made in {parent}: {error.strerror or error}"
    return ""
