"""``delegraph cache``: shows, makes or removes files that delegates have compiled."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from delegraph.cli.answers.printing import (
    console,
    print_json,
    print_paragraph,
    print_table,
    size,
)
from delegraph.cli.answers.table_layout import shortened_path
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import (
    ModelPath,
    delegate_option,
    diagnosis_options,
    json_option,
)
from delegraph.cli.options.sections import SectionedCommand, SummarizedGroup
from delegraph.errors import in_words
from delegraph.quantities import duration, plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.delegation.cache_entries import CacheEntry
    from delegraph.delegation.placement import Placement
    from delegraph.tools.cache_warming import WarmedModel
    from delegraph.tools.setup import Setup

_UNKNOWN = "unknown, +: nothing installed here tells which versions of a cache are in use"

_SHORTEST_PATH = 20
_FOLDER_ROOM = 8
"""Number of characters of its folder that a shortened path keeps; the file's name is whole."""

_OTHER_COLUMNS = 48
"""Number of characters of all other columns in the table of warmed models."""

Groups = dict[tuple[str, str], list["CacheEntry"]]
"""Mapping from a cache's name and version to its entries."""


@click.group("cache", cls=SummarizedGroup)
@diagnosis_options
def command() -> None:
    """List, warm or clear the cache of compiled data.

    The cache is in $DELEGRAPH_CACHE, or else in this user's folder for caches.
    """


@command.command("list", cls=SectionedCommand)
@json_option
@diagnosis_options
def list_(as_json: bool) -> None:
    """List the cached data, the last used first.

    A cache has the name of the delegate that fills it, which may have further ones, NAME-WORD.
    Delegraph itself has some, too. A version is that of the code or the options that made the data;
    --json has the size of each. Data of versions that the installed delegates do not use are stale.
    """
    from delegraph.delegation.blob_cache import LIMIT
    from delegraph.delegation.configuration import (
        CONFIG_VARIABLE,
        FILE_NAME,
        cache_folder,
        configuration,
        configuration_path,
    )
    from delegraph.tools.cache_versions import current_versions, is_current

    folder, groups = str(cache_folder()), _groups(None)
    limit = configuration().cache_size or LIMIT
    current = current_versions() if groups else {}
    if as_json:
        listed = [
            _json(*item) | {"is_current": is_current(item[1][0], current)}
            for item in groups.items()
        ]
        unused = [each for each in groups.values() if is_current(each[0], current) is False]
        answer = {"folder": folder, "limit": limit, "stale_bytes": sum(map(_bytes, unused))}
        print_json(answer | {"entries": listed})
        return
    out = console()
    if not groups:
        out.print(f"{folder} is empty" if os.path.isdir(folder) else f"{folder} is not there yet")
        return
    _print_folder(out)
    caches: dict[str, list[list[CacheEntry]]] = defaultdict(list)
    for (name, _), entries in groups.items():
        caches[name].append(entries)
    everything = [entry for entries in groups.values() for entry in entries]
    stale = [entry for entry in everything if is_current(entry, current) is False]
    rows = []
    for name, versions in caches.items():
        own = [entry for entries in versions for entry in entries]
        rows.append((name, len(versions), *_figures(own, current)))
    columns = ("cache", "versions", "files", "size", "stale", "last used")
    if len(rows) > 1:
        rows.append(("all", len(groups), *_figures(everything, current)))
    hidden = print_table(
        out, columns, rows, right=columns[1:], optional=(("versions",), ("stale",))
    )
    out.print()
    file = configuration_path(os.environ.get(CONFIG_VARIABLE)) or FILE_NAME
    how = f"cache.size = '8GB' in {file} changes that"
    print_paragraph(
        out, f"at most {size(limit)} are kept, what is unused for longest goes first; {how}"
    )
    if "stale" not in hidden and None in [is_current(entry, current) for entry in everything]:
        print_paragraph(out, _UNKNOWN)
    if stale:
        what = f"{plural(len(stale), 'file')}, {size(_bytes(stale))}, of versions not in use"
        print_paragraph(out, f"stale: {what}; 'delegraph cache clear --stale' removes them")


@command.command("clear", cls=SectionedCommand)
@click.argument("caches", nargs=-1, metavar="[NAME]...")
@click.option("-y", "--yes", is_flag=True, help="Remove all without asking.")
@click.option(
    "--stale", is_flag=True, help="Only data of versions that no installed delegate uses."
)
@click.option(
    "--older-than",
    type=click.FloatRange(0),
    metavar="DAYS",
    help="Only data that have not been used for so long.",
)
@json_option
@diagnosis_options
def clear(
    caches: tuple[str, ...], yes: bool, stale: bool, older_than: float | None, as_json: bool
) -> None:
    """Remove the cached data of delegates, or of single caches; without a NAME, all of it.

    Models that use the data are compiled again. Stale data may be in use in another environment. A
    process keeps the files that it has open. On a terminal, the command asks before it removes all.
    """
    from delegraph.delegation.cache_entries import DAY, belongs, remove_entry
    from delegraph.errors import ArgumentError, did_you_mean
    from delegraph.tools.cache_versions import current_versions, is_current

    kept = {namespace for namespace, _ in _groups(None)}
    for name in caches:
        if not any(belongs(namespace, name) for namespace in kept):
            names = {*kept, *(namespace.partition("-")[0] for namespace in kept)}
            hint = did_you_mean(name, sorted(names))
            what = f"nothing of {name!r} is kept{hint}"
            raise ArgumentError(f"{what}; 'delegraph cache list' shows what there is")
    entries = [entry for group in _groups(caches or None).values() for entry in group]
    if stale:
        current = current_versions()
        entries = [entry for entry in entries if is_current(entry, current) is False]
    if older_than is not None:
        moment = time.time() - older_than * DAY
        entries = [entry for entry in entries if entry.used < moment]
    is_all = not (caches or stale or older_than is not None)
    if is_all and not yes and entries and sys.stdin.isatty():
        what = f"{plural(len(entries), 'file')}, {size(_bytes(entries))}"
        if not click.confirm(f"Remove all {what}?", err=True):
            raise CheckFailed("nothing is removed")
    with _in_words():
        for entry in entries:
            remove_entry(entry)
    if as_json:
        print_json({"files": len(entries), "bytes": _bytes(entries)})
    else:
        click.echo(f"removed {plural(len(entries), 'file')}, {size(_bytes(entries))}")


@command.command("warm", cls=SectionedCommand)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...", type=ModelPath())
@delegate_option
@click.option("--threads", type=click.IntRange(min=1), help="Threads of the interpreter.")
@click.option(
    "--max-batch-size",
    type=click.IntRange(min=1),
    help="Prepare the batch sizes of `delegraph serve` with this option.",
)
@json_option
@diagnosis_options
def warm(
    models: tuple[str, ...],
    delegates: tuple[str, ...],
    delegate_files: tuple[str, ...],
    threads: int | None,
    max_batch_size: int | None,
    as_json: bool,
) -> None:
    """Fill the cache for models, as a step of a build.

    Each MODEL is loaded and allocated, with the delegates that it gets by default or with those of
    --delegate. The cached data serve every later process with the same versions, processor, options
    and number of threads. If the cache cannot be written, or a MODEL cannot be prepared, the exit
    code says so.
    """
    from delegraph.delegation.configuration import cache_folder
    from delegraph.errors import DelegraphError
    from delegraph.tools.cache_warming import WarmedModel, allocate, require_writable_cache
    from delegraph.tools.cache_warming import warm as warmed
    from delegraph.tools.setup import Setup

    prepare = allocate if max_batch_size is None else partial(_prepare_batches, max_batch_size)
    if threads is None and max_batch_size is not None:
        threads = 1  # as in a server
    with _in_words():
        require_writable_cache()
    found, errors = [], []
    for model in models:
        setup = Setup(model, "delegraph", delegates or None, delegate_files, threads=threads)
        try:
            found.append(warmed(setup, prepare))
        except DelegraphError as error:
            found.append(WarmedModel(model, error=in_words(error)))
            errors.append(error)
    if as_json:
        print_json({"folder": str(cache_folder()), "models": [each.to_json() for each in found]})
    else:
        _print_warmed(found)
    if len(models) == 1 and errors:
        raise errors[0]
    failed = [
        each.error if Path(each.model).name in each.error else f"{each.model}: {each.error}"
        for each in found
        if each.error
    ]
    if failed:
        raise CheckFailed("; ".join(failed))


def _print_warmed(found: Sequence[WarmedModel]) -> None:
    """Print a row for each model that was prepared, and the placement if it explains the state.

    It does if the model keeps nothing, or if a delegate that the user named takes no node.
    """
    from delegraph.tools.cache_warming import KEEPS_NOTHING

    prepared = [each for each in found if each.seconds]
    if not prepared:
        return
    out = console()
    room = max(_SHORTEST_PATH, out.width - _OTHER_COLUMNS)
    shown = _shown_paths([each.model for each in prepared], room)
    _print_folder(out)
    print_table(
        out,
        ("model", "state", "new files", "size", "time"),
        [
            (
                path,
                m.state,
                m.new_files,
                size(m.new_bytes),
                duration(m.seconds),
            )
            for path, m in zip(shown, prepared, strict=True)
        ],
        right=("new files", "size", "time"),
        names=(),
        optional=(("time",), ("new files",)),
    )
    for path, m in zip(shown, prepared, strict=True):
        if m.state == KEEPS_NOTHING:
            print_paragraph(out, f"{path}: no delegate keeps anything: {m.placement}")
        elif m.delegates_without_nodes:
            print_paragraph(out, f"{path}: {m.placement}")


def _shown_paths(paths: Sequence[str], room: int) -> list[str]:
    """Return paths without some folders if they exceed *room*; those that look alike are whole."""
    shown = [shortened_path(path, max(room, len(Path(path).name) + _FOLDER_ROOM)) for path in paths]
    count = Counter(shown)
    return [each if count[each] == 1 else path for each, path in zip(shown, paths, strict=True)]


def _print_folder(out: Console) -> None:
    """Print the path of the cache as a title, whole in one line, so that it can be copied."""
    from delegraph.delegation.configuration import cache_folder

    out.print(str(cache_folder()), style="bold", soft_wrap=True)


def _prepare_batches(max_batch_size: int, setup: Setup) -> Placement:
    """Run the model once for each batch size that a server uses, in each of its signatures.

    The result is its placement.
    """
    from delegraph.scale.predictor import Predictor
    from delegraph.scale.serving.batches import ServedBatches
    from delegraph.scale.serving.tensors import served_signature

    with setup.interpreter() as interpreter:
        signatures = list(interpreter.get_signature_list()) or [None]
        placement = interpreter.placement
    for signature in signatures:
        with Predictor(
            setup, signature=signature, max_batch=max_batch_size, on_error="column"
        ) as predictor:
            inputs, outputs = predictor.input_columns(), predictor.output_columns()
            has_rows = served_signature(inputs, outputs, max_batch_size).has_rows
            ServedBatches(predictor, has_rows).warm_up()
    return placement


def _groups(names: tuple[str, ...] | None) -> Groups:
    """Return the files in the cache, grouped by cache and version.

    Args:
        names: names of caches or delegates; None means all.
    """
    from delegraph.delegation.cache_entries import belongs, cache_entries

    found: Groups = defaultdict(list)
    with _in_words():
        entries = cache_entries()
    for entry in entries:
        if names is None or any(belongs(entry.namespace, name) for name in names):
            found[entry.namespace, entry.version].append(entry)
    return found


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Context in which system errors also name the cache file that caused them, and the reason."""
    from delegraph.delegation.configuration import CACHE_VARIABLE
    from delegraph.errors import ArgumentError

    try:
        yield
    except OSError as error:
        reason = f"{error.filename or 'its folder'}: {error.strerror or error}"
        raise ArgumentError(
            f"the cache cannot be used: {reason}; {CACHE_VARIABLE}=FOLDER names another folder"
        ) from error


def _json(key: tuple[str, str], entries: list[CacheEntry]) -> dict[str, object]:
    name, version = key
    counts = {"files": len(entries), "bytes": _bytes(entries)}
    return {"cache": name, "version": version, **counts, "used": entries[0].used}


def _bytes(entries: list[CacheEntry]) -> int:
    return sum(entry.size for entry in entries)


def _figures(
    entries: list[CacheEntry], current: Mapping[str, frozenset[str]]
) -> tuple[int, str, str, str]:
    """Return the cells of a cache: number and size of files, stale bytes, and the last use.

    Args:
        entries: the cache's entries.
        current: versions in use by the name of their cache.
    """
    from delegraph.tools.cache_versions import is_current

    known = [is_current(entry, current) for entry in entries]
    old = _bytes([entry for entry, fresh in zip(entries, known, strict=True) if fresh is False])
    is_unknown = None in known
    stale = f"{size(old)}{'+' * is_unknown}" if old or not is_unknown else "unknown"
    used = max(entry.used for entry in entries)
    moment = datetime.fromtimestamp(used, timezone.utc).astimezone()
    return len(entries), size(_bytes(entries)), stale, f"{moment:%Y-%m-%d %H:%M}"
