"""Writes entries of delegates into a model file, as ``delegraph compile`` does for numba_cpu.

The delegate is applied and prepared as for a run, once for each processor level and number of
threads. The model's nodes do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.driver import SimpleDelegate
from delegraph.errors import PluginOptionError
from delegraph.graph.associated_files import AssociatedFiles, with_associated_files
from delegraph.graph.model import Model
from delegraph.graph.model_entries import with_entries
from delegraph.plugins import creation
from delegraph.plugins.options import make_options, options_text
from delegraph.plugins.plugin_set import Offer
from delegraph.runtime.arguments import OpResolverType
from delegraph.runtime.delegates.defaults import added_to
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.session import Session
from delegraph.tools.explanation import Explanation, explain
from delegraph.tools.kept_entries import KeptEntries, listed_entries, store_of, with_list
from delegraph.tools.progress import Progress

_LEVEL = "cpu"
"""Name of the option that sets a delegate's processor level."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """A delegate that stores data after the model in its file, with one set of options.

    Attributes:
        offer: the plugin's offer of the delegate.
        options: options of the delegate.
    """

    offer: Offer
    options: object

    @property
    def address(self) -> str:
        """The delegate with its options, as text in the command line's syntax."""
        spec = self.offer.spec
        text = "" if self.options is None else options_text(spec, self.options)
        return f"{spec.name}:{text}" if text else spec.name

    def delegate(self) -> Delegate:
        """Return a new delegate that writes entries."""
        spec = self.offer.spec
        assert spec.load_compiling is not None  # otherwise there would be no keeper for it
        compiling = dataclasses.replace(spec, load=spec.load_compiling)
        return creation.make_delegate(compiling, self.options, self.offer.plugin)


def keepers(offer: Offer, options: object, levels: Sequence[str]) -> list[Keeper]:
    """Return a keeper for each processor level.

    Args:
        offer: the plugin's offer of the delegate.
        options: the delegate's options.
        levels: values of the delegate's option ``cpu``; empty means the value in *options*.

    Raises:
        PluginOptionError: the delegate has no such option, or another has the value.
    """
    if not levels:
        return [Keeper(offer, options)]
    fields = dataclasses.asdict(options) if dataclasses.is_dataclass(options) else {}  # type: ignore[arg-type]  # an instance
    if _LEVEL not in fields:
        raise PluginOptionError(f"delegate {offer.spec.name!r} has no option {_LEVEL!r} for levels")
    spec = offer.spec
    return [Keeper(offer, make_options(spec, {**fields, _LEVEL: level})) for level in levels]


def with_kept(
    model: Model,
    keeping: Sequence[Keeper],
    threads: Sequence[int],
    progress: Progress,
    arguments: Mapping[str, Any],
) -> tuple[bytes, tuple[KeptEntries, ...], Explanation]:
    """Let delegates store decisions in a model file; return the file, and facts about the entries.

    The third result is the placement. Existing entries are kept, except entries of other versions
    of the same delegates.

    Args:
        model: the model.
        keeping: the delegates that write entries.
        threads: numbers of threads; empty means the interpreter's default.
        progress: function that is called before each delegate prepares the model.
        arguments: ``placement`` and ``limits`` of ``Interpreter``.

    Raises:
        DelegraphError: the model cannot be loaded or allocated, or a delegate fails.
    """
    content = model.content[: AssociatedFiles(model.content).model_bytes].tobytes()
    written: dict[str, bytes] = {}
    found: list[KeptEntries] = []
    numbers: Sequence[int | None] = threads or [None]
    turns = [(keeper, number) for keeper in keeping for number in numbers]
    for turn, (keeper, number) in enumerate(turns):
        progress(f"compiling for {keeper.address}", turn, len(turns))
        new: dict[str, bytes] = {}
        with Interpreter(
            model_content=content, num_threads=number, delegates=[], **arguments
        ) as interpreter:
            session, delegate = interpreter.session, keeper.delegate()
            session.calls.run("compile_model", _apply, session, delegate, new)
            interpreter.allocate_tensors()
            explanation = explain(interpreter)
        added = [len(new[name]) for name in new.keys() - written.keys()]
        plugin = keeper.offer.plugin
        provider = f"{plugin.distribution} {plugin.version}".strip()
        size, used = sum(added), _used_threads(delegate, number)
        stores = tuple(sorted(set(map(store_of, new))))
        found.append(
            KeptEntries(
                keeper.address, provider, number, len(added), size, used, stores, frozenset(new)
            )
        )
        written.update(new)
    entries = {**dict(_remaining(model, written)), **written}
    if entries:
        entries = with_list(entries, listed_entries(model), found)
    file = with_entries(content, entries) if entries else content
    return with_associated_files(file, model.content), tuple(found), explanation


def _used_threads(delegate: Delegate, number: int | None) -> int | None:
    return delegate.simple.most_threads(number) if isinstance(delegate, SimpleDelegate) else None


def _apply(session: Session, delegate: Delegate, written: dict[str, bytes]) -> None:
    for subgraph in session.subgraphs:
        subgraph.context.write_entries(written)
    session.apply_all(added_to([delegate], session, OpResolverType.AUTO))


def _remaining(model: Model, written: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each of the file's old entries that stay beside *written*."""
    namespaces = {name.split("/")[0]: name.split("/")[1] for name in written}
    keys = set(map(_key, written))
    places = {} if model.entries is None else model.entries.places
    for name, (place, length) in places.items():
        namespace, version, *_ = *name.split("/"), ""
        if namespaces.get(namespace, version) == version and _key(name) not in keys:
            yield name, model.content[place : place + length].tobytes()


def _key(name: str) -> str:
    """Name of an entry without the digest of its content."""
    return name.rpartition("-")[0]
