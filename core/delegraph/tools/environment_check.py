"""Finds faults of this machine and causes of slow models, with a command to run next."""

from __future__ import annotations

import difflib
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from delegraph.delegation.cache_entries import belongs, cache_entries
from delegraph.delegation.configuration import (
    CACHE_VARIABLE,
    CONFIG_VARIABLE,
    DEFAULT_DELEGATES_VARIABLE,
    default_delegates,
)
from delegraph.native.litert import guard
from delegraph.plugins.address import DelegateAddress, canonical_name
from delegraph.plugins.plugin import ALLOW_VARIABLE, DISABLE_VARIABLE, Plugin
from delegraph.plugins.sources import pip_install
from delegraph.quantities import plural
from delegraph.runtime.delegates.failure_memory import FORGET, KnownFailure
from delegraph.tools.cache_versions import stale_bytes
from delegraph.tools.default_delegates import DefaultDelegates
from delegraph.tools.hosts import Host
from delegraph.tools.machine_report import (
    PLUGIN_CACHE,
    PREFIX,
    RUNTIMES,
    Cache,
    MachineReport,
    Processor,
)
from delegraph.tools.plugin_check import Finding, Level

LITTLE_SPACE = 200_000_000
"""Bytes of free space in a cache folder below which a warning is due."""

NEARLY_FULL = 0.8
"""Share of its limit from which a cache counts as nearly full."""

LONGEST_NOTE = 64
"""Size of a cache entry, in bytes, up to which the entry holds only a digest, and no program."""

FEW_MODELS = 3
"""Largest number of models that a finding names."""

VARIABLES = (
    CACHE_VARIABLE,
    CONFIG_VARIABLE,
    DEFAULT_DELEGATES_VARIABLE,
    ALLOW_VARIABLE,
    DISABLE_VARIABLE,
    "DELEGRAPH_EDGETPU_DEVICES",
    "DELEGRAPH_NUMBA_CPU",
    "DELEGRAPH_NUMBA_GUARD",
    "DELEGRAPH_NUMBA_KEEP",
    "DELEGRAPH_SERVE_TOKEN",
)
"""Environment variables that Delegraph and its own plugins read."""

SWITCHES = ("DELEGRAPH_NUMBA_GUARD", "DELEGRAPH_NUMBA_KEEP")
"""Those that are 0 or 1."""

_FAST = "delegraph-numba-cpu"
"""Distribution of the delegate that applies by default."""

QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")
"""Path of Linux's file with a container's limit of processor time (control groups, version 2)."""


def check_environment(
    report: MachineReport,
    hosts: Sequence[Host],
    by_default: DefaultDelegates,
    failures: Sequence[KnownFailure] = (),
    plugins: Sequence[Plugin] = (),
) -> Iterator[Finding]:
    """Yield findings about hosts, versions, speed and write access.

    Args:
        report: report of this machine.
        hosts: the hosts, and reasons why delegates cannot run in them.
        by_default: delegates that are applied without being named.
        failures: failures of these delegates in earlier processes.
        plugins: the installed plugins, in any state.
    """
    yield from _hosts(hosts, report)
    yield from _python()
    yield from _variables(report.variables)
    yield from _no_default(by_default, plugins)
    yield from _threads(report.processor)
    yield from _caches(report, by_default)
    yield from _full_cache(report.caches[-1], plugins)
    yield from _temporary_files()
    yield from _failures(failures)


def _failures(failures: Sequence[KnownFailure]) -> Iterator[Finding]:
    """Yield a note for each default delegate that failed in earlier processes."""
    for name in sorted({failure.delegate for failure in failures}):
        own = {failure.model: failure for failure in failures if failure.delegate == name}
        files = sorted({each.shown_model for each in own.values() if each.file})
        shown = ", ".join(files[:FEW_MODELS] + ["..."] * (len(files) > FEW_MODELS))
        models = f"{plural(len(own), 'model')}{f' ({shown})' * bool(shown)}"
        text = f"failed at {models}: the results were right, but slower"
        remedy = f"delegraph doctor --report FILE.md, for its authors; to forget it: {FORGET}"
        yield Finding(Level.NOTE, f"default delegate {name}", text, remedy)


def _hosts(hosts: Iterable[Host], report: MachineReport) -> Iterator[Finding]:
    is_installed = any(report.versions.get(name) for name in RUNTIMES)
    for host in hosts:
        where = f"--runtime {host.runtime}"
        if host.refusal:
            text, remedy = host.refusal, "use --runtime delegraph, or pip install ai-edge-litert"
            level = Level.WARNING if is_installed else Level.NOTE
            yield Finding(level, where, f"takes no delegates: {text}", remedy)
        elif not host.is_tested:
            tested = guard.KNOWN if host.runtime == "litert" else guard.KNOWN_COMPILED_MODELS
            text = f"{host.package} on this platform was tried now, and is not among those tested"
            newest = _newest(tested if isinstance(tested, set) else tested["ai_edge_litert"])
            yield Finding(Level.NOTE, where, text, f"pip install ai-edge-litert=={newest}")


def _newest(versions: Iterable[str]) -> str:
    return max(versions, key=lambda version: [int(part) for part in version.split(".")])


def _python() -> Iterator[Finding]:
    """Yield a note if Delegraph was not tested with this version of Python."""
    prefix = "Programming Language :: Python :: 3."
    try:
        classifiers = metadata.metadata("delegraph").get_all("Classifier") or []
    except metadata.PackageNotFoundError:
        return
    tested = sorted(int(each[len(prefix) :]) for each in classifiers if each.startswith(prefix))
    minor = sys.version_info.minor
    if tested and minor not in tested:
        text = f"3.{minor} is not among those tested: 3.{tested[0]} to 3.{tested[-1]}"
        yield Finding(Level.NOTE, "Python", text, f"python3.{tested[-1]} -m venv FOLDER")


def _variables(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each environment variable with a wrong value, or that is not read.

    It is a warning if the name is nearly one that is read, else a note, as another plugin may read
    the variable.
    """
    for name, value in variables.items():
        if name in SWITCHES and value not in ("", "0", "1"):
            text = f"is {value!r}, expected 0 (off) or 1 (on)"
            yield Finding(Level.WARNING, f"variable {name}", text, "correct its value, or unset it")
        if name in VARIABLES or PLUGIN_CACHE.fullmatch(name):
            continue
        words = {each.removeprefix(PREFIX): each for each in VARIABLES}
        close = difflib.get_close_matches(name.removeprefix(PREFIX), words, n=1)
        text, where = "Delegraph reads no variable of this name", f"variable {name}"
        if close:
            text = f"{text}; did you mean {words[close[0]]}?"
            yield Finding(Level.WARNING, where, text, "correct its name, or unset it")
        else:
            remedy = f"unset {name}, unless a plugin of yours reads it"
            yield Finding(Level.NOTE, where, text, remedy)


def _no_default(by_default: DefaultDelegates, plugins: Iterable[Plugin]) -> Iterator[Finding]:
    if by_default.delegates or default_delegates()[0] is not None:
        return
    # The rest is about plugins, which have their own findings.
    reason = by_default.why.partition(";")[0]
    remedy = f"{pip_install(_FAST)}; if it is installed: delegraph numba warmup"
    fast = next((p for p in plugins if canonical_name(p.distribution) == _FAST), None)
    if fast is not None and fast.error and not fast.is_faulty:  # the user's lists exclude it
        reason, remedy = f"{fast}: {fast.error}", fast.remedy
    text = f"none, so models run on Delegraph's own, slow kernels: {reason}"
    yield Finding(Level.WARNING, "default delegate", text, remedy)


def _threads(processor: Processor) -> Iterator[Finding]:
    usable, cores = processor.usable_cores, processor.cores
    if usable < cores:
        text = f"this process may use {usable} of {cores} cores"
        remedy = "start it without taskset, or with more cores in its cpuset"
        yield Finding(Level.NOTE, "threads", text, remedy)
    quota = _granted_cores()
    if quota is not None and quota < usable:
        threads = max(1, math.floor(quota))
        text = f"the container grants the time of {quota:g} cores, and {usable} are seen: more "
        remedy = f"--threads {threads}, or Interpreter(num_threads={threads})"
        yield Finding(Level.WARNING, "threads", f"{text}threads than that wait", remedy)


def _granted_cores() -> float | None:
    """Number of cores that this container may use; None means all."""
    try:
        quota, period = QUOTA_FILE.read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _caches(report: MachineReport, by_default: DefaultDelegates) -> Iterator[Finding]:
    """Yield a note for a cache without a prepared model, and a warning if disk space is short.

    Args:
        report: report of this machine.
        by_default: delegates that models get by default, which keep compiled programs.
    """
    for cache in report.caches:
        if cache.error or not cache.path:
            continue
        where = f"cache {cache.path}"
        is_own = cache is report.caches[-1]
        if is_own and by_default.delegates and not _has_programs(cache, by_default.delegates):
            text = "keeps no programs yet: the first start of a model that needs some takes longer"
            yield Finding(Level.NOTE, where, text, "delegraph cache warm MODEL.tflite")
        free = shutil.disk_usage(_existing(Path(cache.path))).free
        if free < LITTLE_SPACE:
            text = f"has {free / 1e6:.0f} MB left: what is compiled may not be kept"
            another = f"{CACHE_VARIABLE}=FOLDER names another"
            remedy = "delegraph cache clear" if is_own and cache.bytes else another
            yield Finding(Level.WARNING, where, text, remedy)


def _full_cache(cache: Cache, plugins: Iterable[Plugin]) -> Iterator[Finding]:
    """Yield a note if Delegraph's cache is nearly full, with what is stale in it.

    Stale entries are unknown if a plugin is faulty, since plugins' code names the others.
    """
    if cache.limit is None or cache.bytes < NEARLY_FULL * cache.limit:
        return
    text = f"holds {cache.bytes / 1e9:.1f} GB of at most {cache.limit / 1e9:.1f} GB"
    remedy = "delegraph cache clear --older-than 30, or a greater cache.size in delegraph.toml"
    is_known = not any(plugin.is_faulty for plugin in plugins)
    if is_known and (stale := stale_bytes(cache.path)):
        text += f", {stale / 1e9:.1f} GB of it of versions not in use"
        remedy = "delegraph cache clear --stale"
    yield Finding(Level.NOTE, f"cache {cache.path}", text, remedy)


def _has_programs(cache: Cache, delegates: Iterable[str]) -> bool:
    """Whether a cache has entries of *delegates* that are longer than a digest."""
    names = [DelegateAddress.parse(each).name for each in delegates]
    return any(
        entry.size > LONGEST_NOTE and any(belongs(entry.namespace, name) for name in names)
        for entry in (cache_entries(cache.path) if cache.files else ())
    )


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _temporary_files() -> Iterator[Finding]:
    """Yield an error if no temporary file can be written; delegate processes need them."""
    try:
        folder = tempfile.gettempdir()
        with tempfile.TemporaryFile():
            return
    except OSError as error:
        folder = tempfile.tempdir or "none"
        text = f"cannot be written: {error.strerror or error}"
    remedy = f"TMPDIR=FOLDER names another; {os.fspath(folder)!r} was tried"
    yield Finding(Level.ERROR, "temporary files", text, remedy)
