"""Failures of default delegates, kept for ``delegraph doctor`` and for the next start.

Some delegates need a long time to find out that they cannot compile a model, at each start again.
So slow failures are kept for later processes with the same model, shapes and delegate. They are
removed when the version of Delegraph or of the delegate's distribution changes, and by ``delegraph
cache clear default-failures``.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from importlib_metadata import version

from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.cache_entries import cache_entries
from delegraph.delegation.cache_files import read_safe
from delegraph.delegation.incident import Incident
from delegraph.errors import DelegatePhase, DelegateProcessError, DelegraphError
from delegraph.json_records import JsonRecord
from delegraph.lazy_dataclass import dataclass
from delegraph.plugins.plugin_set import installed

if TYPE_CHECKING:
    from delegraph.graph.model import Model
    from delegraph.operators.tensor import Tensor

logger = logging.getLogger(__name__)

NAMESPACE = "default-failures"

FORGET = f"delegraph cache clear {NAMESPACE}"
"""Command that removes the known failures, and no other data."""

SLOW = 1.0
"""Duration in seconds from which on a failure is stored for later processes."""

_COMPILING = ("init", "prepare")
_PASSING = (MemoryError, OSError, DelegateProcessError)  # may not happen again


@dataclass(frozen=True, slots=True)
class KnownFailure(JsonRecord):
    """A failure of a default delegate, in this or an earlier process.

    Attributes:
        delegate: name of the delegate.
        origin: distribution of the delegate, with its version.
        model: SHA-256 of the model's bytes.
        shapes: shapes of the model's inputs.
        phase: phase in which the delegate failed, such as ``"prepare"``.
        error: text of the error.
        is_skipped: whether the delegate is no longer applied to this model.
        file: path of the model's file at the failure; empty if it was in memory.
    """

    delegate: str
    origin: str
    model: str
    shapes: tuple[tuple[int, ...], ...]
    phase: DelegatePhase
    error: str
    is_skipped: bool
    file: str = ""

    @property
    def shown_model(self) -> str:
        """Name of the model's file; for a model in memory, the start of its digest."""
        return Path(self.file).name or f"{self.model[:12]}... (in memory)"


class FailureMemory:
    """Known failures of one model's default delegates, kept in the cache.

    Args:
        model: the model.
        cache_dir: the folder of the cache; None for the user's own.
        addresses: mapping from the ``id`` of a delegate to its name in the configuration. Failures
            of other delegates are kept for ``delegraph doctor`` only.

    Attributes:
        is_kept: whether this process keeps failures; not where it tries generated models.
    """

    is_kept: ClassVar[bool] = True

    def __init__(
        self, model: Model, cache_dir: Path | None, addresses: Mapping[int, str] | None = None
    ) -> None:
        self._model = model
        self._cache_dir = cache_dir
        self._addresses = addresses or {}
        self._digest = ""
        self._recalled: set[tuple[str, tuple[tuple[int, ...], ...]]] = set()
        self.begin()

    def begin(self) -> None:
        """Note the start time of work that may fail, to tell later whether it was slow."""
        self._start = time.monotonic()

    def recall(self, delegate: object, name: str, inputs: Sequence[Tensor]) -> Incident | None:
        """Return an earlier failure of a delegate for inputs of the present shapes; else None."""
        address = self._addresses.get(id(delegate))
        if address is None or (address, _shapes(inputs)) in self._recalled:
            return None
        self._recalled.add((address, _shapes(inputs)))
        try:
            cache = self._cache(name)
            found = cache.read(self._key(address, inputs)) if cache.folder.is_dir() else None
            known = None if found is None else KnownFailure.from_json(json.loads(found))
        except (OSError, ValueError, DelegraphError) as error:
            logger.debug("failures of earlier processes cannot be read: %s", error)
            return None
        if known is None or not known.is_skipped:
            return None
        when = f"known from an earlier process; '{FORGET}' lets it try again"
        return Incident(name, 0, -1, (), known.phase, f"{known.error} ({when})")

    def keep(
        self, delegate: object, incident: Incident, error: BaseException, inputs: Sequence[Tensor]
    ) -> None:
        """Write the failure of a delegate to the cache; if the cache cannot be used, do nothing.

        *incident* and *error* describe the failure; it is kept for the shapes of *inputs*.
        """
        if not self.is_kept:
            return
        address = self._addresses.get(id(delegate))
        is_slow = time.monotonic() - self._start >= SLOW
        is_compiling = incident.phase in _COMPILING and not any(_is_passing(error))
        failure = KnownFailure(
            incident.delegate,
            origin_of(incident.delegate),
            self._model_digest(),
            _shapes(inputs),
            incident.phase,
            incident.error,
            is_skipped=address is not None and is_slow and is_compiling,
            file=self._model.file,
        )
        try:
            content = json.dumps(failure.to_json(), sort_keys=True).encode()
            self._cache(incident.delegate).put(self._key(address or "", inputs), content)
        except (OSError, DelegraphError) as reason:
            logger.debug("the failure cannot be kept: %s", reason)

    def _model_digest(self) -> str:
        import hashlib  # lazy import: it takes milliseconds, and few delegates fail

        self._digest = self._digest or hashlib.sha256(self._model.content.data).hexdigest()
        return self._digest

    def _key(self, address: str, inputs: Sequence[Tensor]) -> str:
        return f"{address} {self._model_digest()} {_shapes(inputs)}"

    def _cache(self, name: str) -> BlobCache:
        text = f"{origin_of(name)}-delegraph-{version('delegraph')}"
        return BlobCache(NAMESPACE, re.sub(r"[^A-Za-z0-9._-]", "-", text)[-100:], self._cache_dir)


def known_failures() -> list[KnownFailure]:
    """Return the failures in the user's cache, the latest first."""
    found = []
    try:
        entries = [e for e in cache_entries() if e.namespace == NAMESPACE]
    except (OSError, DelegraphError) as error:
        logger.debug("failures of earlier processes cannot be read: %s", error)
        return []
    for entry in entries:
        try:
            found.append(KnownFailure.from_json(json.loads(read_safe(entry.path))))
        except (OSError, ValueError) as error:
            logger.debug("%s cannot be read: %s", entry.path, error)
    return found


def _shapes(inputs: Sequence[Tensor]) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.shape for tensor in inputs)


def _is_passing(error: BaseException | None) -> Iterator[bool]:
    while error is not None:
        yield isinstance(error, _PASSING)
        error = error.__cause__


def origin_of(name: str) -> str:
    """Return distribution and version of the delegate *name*; ``"delegate NAME"`` if unknown."""
    for offer in installed().offers():
        if offer.spec.name == name:
            return f"{offer.plugin.distribution} {offer.plugin.version}"
    return f"delegate {name}"
