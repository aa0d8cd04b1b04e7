"""The models of a server that are loaded and unloaded while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from delegraph.errors import DelegraphError, did_you_mean, in_words
from delegraph.scale.rows import Columns
from delegraph.scale.serving.batches import Answer
from delegraph.scale.serving.model_files import Found, ModelFile, OfferedModels
from delegraph.scale.serving.refusals import Kind, Refusal
from delegraph.scale.serving.served_model import OUTCOMES, Engine, ServedModel

_LOG = logging.getLogger(__name__)

READY, LOADING, UNLOADING, UNAVAILABLE = "READY", "LOADING", "UNLOADING", "UNAVAILABLE"
"""The protocol's states of a model."""


class _DrainedEngine:
    """Wraps an engine so that it stops only when its running requests have ended."""

    def __init__(self, engine: Engine) -> None:
        self.signature = engine.signature
        self._engine = engine
        self._running = 0
        self._is_closing = False
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def start(self) -> None:
        """Prepare the delegates, then accept requests."""
        await self._engine.start()

    async def is_ready(self) -> bool:
        """Whether requests are computed without delay, because delegates are prepared."""
        return not self._is_closing and await self._engine.is_ready()

    async def answer(self, columns: Columns) -> Answer:
        """Return the result of *columns*, the rows of a request.

        Raises:
            Refusal: the model is being unloaded, or the engine refuses.
        """
        if self._is_closing:
            raise Refusal(Kind.UNAVAILABLE, "the model was unloaded meanwhile; send it again")
        self._running += 1
        self._is_idle.clear()
        try:
            return await self._engine.answer(columns)
        finally:
            self._running -= 1
            if not self._running:
                self._is_idle.set()

    async def stop(self) -> None:
        """Accept no further requests, and stop after the running requests."""
        self._is_closing = True
        await self._is_idle.wait()
        await self._engine.stop()


class _Version:
    """A version of a model: its file and state, and its engine while it is loaded."""

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self.state = UNAVAILABLE
        self.reason = "not loaded"
        self.has_failed = False
        self.model: ServedModel | None = None
        self._stamp: tuple[int, ...] = ()

    def holds(self, file: ModelFile) -> bool:
        """Whether this version was loaded from the present content of *file*."""
        return self.model is not None and self.file == file and self._stamp == file.stamp()

    async def load(self, open_engine: Callable[[ModelFile], Engine]) -> None:
        """Load the file into a new engine from *open_engine*, or record why that fails."""
        if self.file.error:
            self._fail(self.file.error)
            return
        self.state, self.reason = LOADING, ""
        self._stamp = self.file.stamp()
        engine = None
        try:
            engine = _DrainedEngine(await asyncio.to_thread(open_engine, self.file))
            await engine.start()
        except Exception as error:  # noqa: BLE001  # a delegate may raise anything; others go on
            self._fail(in_words(error))
            if engine is not None:
                await engine.stop()
            return
        self.model = ServedModel(self.file.name, self.file.version, engine)
        self.state = READY

    def _fail(self, reason: str) -> None:
        _LOG.warning("model %s cannot be loaded: %s", self.file.name, reason)
        self.state, self.reason, self.has_failed = UNAVAILABLE, reason, True

    async def unload(self) -> Counter[str]:
        """Unload the file after its running requests; return the number of requests by outcome."""
        if self.model is None:
            return Counter()
        model, self.model = self.model, None  # new requests do not find it
        self.state, self.reason = UNLOADING, ""
        try:
            await model.engine.stop()
        finally:
            self.state, self.reason = UNAVAILABLE, "unloaded"
        return model.metrics.outcomes


class Repository:
    """Models in files, which are loaded and unloaded while the server runs.

    A model is loaded in a thread, so that other models answer requests meanwhile. A file that
    cannot be loaded stays in the index with its error. All methods must be called in one event
    loop.

    Args:
        offered: the models on disk, and whether clients may load and unload them.
        open_engine: function that returns the engine of a model file; it is called in a thread.
    """

    def __init__(self, offered: OfferedModels, open_engine: Callable[[ModelFile], Engine]) -> None:
        self._offered = offered
        self._open_engine = open_engine
        self._models: dict[str, dict[str, _Version]] = {}
        self._unloaded: Counter[str] = Counter()
        self._change = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_started = False

    async def start(self) -> None:
        """Load each model once.

        Raises:
            ArgumentError: the files cannot be listed.
        """
        async with self._change:
            for name, files in (await self._scanned()).items():
                await self._replace(name, files)
        self._is_started = True

    async def stop(self) -> None:
        """Unload all models after their running requests."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        async with self._change:
            await self._unload_all(list(self._versions()))

    # -- what requests ask -------------------------------------------------------------------------

    def find(self, name: str, version: str = "") -> ServedModel:
        """Return a model.

        An empty *version* means the newest one that is ready.

        Raises:
            Refusal: the model or version does not exist or is not loaded.
        """
        versions = self._known(name)
        if version and version not in versions:
            known = ", ".join(filter(None, versions)) or "none"
            raise Refusal(
                Kind.NOT_FOUND, f"model {name!r} has no version {version!r}; versions are {known}"
            )
        chosen = [versions[version]] if version else list(versions.values())
        for one in reversed(chosen):
            if one.model is not None:
                return one.model
        last = chosen[-1]
        raise Refusal(
            Kind.UNAVAILABLE,
            f"model {name!r} is not ready: {last.reason or f'it is {last.state.lower()}'}",
        )

    def metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """Return the protocol's metadata of the model *name*; an empty *version* means the newest.

        Raises:
            Refusal: the model or version does not exist or is not loaded.
        """
        ready = [v for v, one in self._known(name).items() if one.model is not None and v]
        return self.find(name, version).metadata(ready)

    async def is_ready(self) -> bool:
        """Whether all models that can be loaded are ready, and there is at least one of them."""
        if not self._is_started:
            return False
        loaded = [one.model for one in self._versions() if one.model is not None]
        if not loaded:
            return not any(one.has_failed for one in self._versions())
        return all([await model.is_ready() for model in loaded])

    def index(self, only_ready: bool = False) -> list[dict[str, str]]:
        """Return name, version, state and reason of each version of each model.

        With *only_ready*, only versions that are ready are included.
        """
        return [
            {
                "name": one.file.name,
                "version": one.file.version,
                "state": one.state,
                "reason": one.reason,
            }
            for _, versions in sorted(self._models.items())
            for one in _ordered(versions).values()
            if one.state == READY or not only_ready
        ]

    def outcomes(self) -> dict[str, int]:
        """Return the number of requests by outcome."""
        counts = Counter(self._unloaded)
        for one in self._versions():
            if one.model is not None:
                counts.update(one.model.metrics.outcomes)
        return {outcome: counts[outcome] for outcome in OUTCOMES}

    def _versions(self) -> Iterator[_Version]:
        return (one for versions in self._models.values() for one in versions.values())

    def _known(self, name: str) -> dict[str, _Version]:
        """Return the versions of the model *name*, the newest last."""
        if name not in self._models:
            hint = did_you_mean(name, list(self._models))
            raise Refusal(Kind.NOT_FOUND, f"no model {name!r}{hint}")
        return _ordered(self._models[name])

    # -- changes -----------------------------------------------------------------------------------

    async def load(self, name: str) -> None:
        """Load the changes of the model *name*: a new version, or a file that was written anew.

        If a version cannot be loaded, the versions before it remain.

        Raises:
            Refusal: the model does not exist or cannot be loaded, or clients may not change models.
        """
        await self._changed(self._load(name))

    async def unload(self, name: str) -> None:
        """Unload all versions of the model *name* after their running requests.

        Raises:
            Refusal: the model does not exist, or clients may not change models.
        """
        await self._changed(self._unload(name))

    async def _changed(self, change: Coroutine[Any, Any, None]) -> None:
        """Wait for *change* (a load or unload) to complete, even if the client disconnects."""
        if not self._offered.may_change:
            change.close()
            raise Refusal(
                Kind.FORBIDDEN, "clients may not load and unload models: see --model-control"
            )
        task = asyncio.create_task(change)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def _load(self, name: str) -> None:
        async with self._change:
            try:
                found = await self._scanned()
            except DelegraphError as error:
                raise Refusal(Kind.UNAVAILABLE, in_words(error)) from error
            if name not in found:
                hint = did_you_mean(name, list(found))
                raise Refusal(Kind.NOT_FOUND, f"no model {name!r} in the repository{hint}")
            errors = await self._replace(name, found[name])
        if errors:
            raise Refusal(Kind.INVALID, f"model {name!r} cannot be loaded: {'; '.join(errors)}")

    async def _unload(self, name: str) -> None:
        async with self._change:
            await self._unload_all(list(self._known(name).values()))

    async def _scanned(self) -> Found:
        """Return the models that exist at present, after adding new ones to the index."""
        found = await asyncio.to_thread(self._offered.find)
        for name, files in found.items():
            self._models.setdefault(name, {file.version: _Version(file) for file in files[-1:]})
        return found

    async def _replace(self, name: str, files: Sequence[ModelFile]) -> list[str]:
        """Load the versions in *files* that have changed, then unload their old versions.

        Returns:
            Reasons why versions cannot be loaded. Then a version that was loaded before remains.
        """
        wanted = files if self._offered.all_versions else files[-1:]
        errors = []
        for file in wanted:
            new = await self._replaced(self._models[name], file)
            if new is not None and new.has_failed:
                errors.append(f"version {file.version}: " * bool(file.version) + new.reason)
        versions = self._models[name]
        numbers = {file.version for file in wanted}
        others = [one for version, one in versions.items() if version not in numbers]
        kept = [one for one in others if errors and one.model is not None]
        self._models[name] = {
            version: one for version, one in versions.items() if version in numbers or one in kept
        }
        await self._unload_all([one for one in others if one not in kept])
        return errors

    async def _replaced(self, versions: dict[str, _Version], file: ModelFile) -> _Version | None:
        """Load *file*; return its version, even if loading failed; None if it is loaded already.

        *versions* are the model's versions; a loaded version is added to them.
        """
        old = versions.get(file.version)
        if old is not None and old.holds(file):
            return None
        new = _Version(file)
        if old is None or old.model is None:
            versions[file.version] = new  # the index shows that it is being loaded
        await new.load(self._open_engine)
        if new.model is not None:
            versions[file.version] = new
            if old is not None:
                await self._unload_all([old])
        return new

    async def _unload_all(self, versions: Sequence[_Version]) -> None:
        for counts in await asyncio.gather(*(one.unload() for one in versions)):
            self._unloaded.update(counts)


def _ordered(versions: dict[str, _Version]) -> dict[str, _Version]:
    """Return *versions* sorted by number; a file without a number comes first."""
    return dict(sorted(versions.items(), key=lambda entry: int(entry[0] or 0)))
