"""Versions of caches that the installed code uses; entries of other versions are stale."""

from __future__ import annotations

from collections.abc import Mapping

from delegraph.delegation import content_digest
from delegraph.delegation.cache_entries import CacheEntry, cache_entries
from delegraph.log import Logger
from delegraph.plugins.plugin_set import installed
from delegraph.runtime import kept_start
from delegraph.runtime.delegates import kept_findings

logger = Logger(__name__)


def current_versions() -> dict[str, frozenset[str]]:
    """Return a mapping from the names of caches to the versions that installed code uses.

    It has no caches of delegates whose spec does not tell their versions.
    """
    found = {
        kept_start.NAMESPACE: frozenset({str(kept_start.FORM)}),
        kept_findings.NAMESPACE: frozenset({kept_findings.VERSION}),
        content_digest.NAMESPACE: frozenset({content_digest.VERSION}),
    }
    for offer in installed().offers():
        if offer.spec.cache_versions is None:
            continue
        try:
            told = {name: frozenset(each) for name, each in offer.spec.cache_versions().items()}
        except Exception as error:  # noqa: BLE001  # whatever the plugin's own code raises
            logger.warning("delegate %r: cache_versions() failed: %s", offer.address, error)
        else:
            for name, versions in told.items():
                found[name] = found.get(name, frozenset()) | versions
    return found


def stale_bytes(folder: str) -> int:
    """Number of bytes of the entries in a cache's folder that installed code does not use."""
    current = current_versions()
    entries = (entry for entry in cache_entries(folder) if is_current(entry, current) is False)
    return sum(entry.size for entry in entries)


def is_current(entry: CacheEntry, current: Mapping[str, frozenset[str]]) -> bool | None:
    """Whether installed code uses the version of an entry; None if that is unknown.

    Args:
        entry: entry of the cache.
        current: result of :func:`current_versions`.
    """
    versions = current.get(entry.namespace)
    return None if versions is None else entry.version in versions
