"""Cache of compiled partitions on disk, shared by all processes of a user.

Each entry is a file of its own, ``NAMESPACE/VERSION/SHARD/KEY-DIGEST.blob``. KEY is a hash of the
entry's key, and DIGEST the SHA-256 of the content, which is checked when the file is read. SHARD is
the first two digits of KEY, so that a look-up lists one of 256 folders. Files are written in one
step and never changed. :mod:`delegraph.delegation.cache_files` decides which files are safe to use.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from delegraph.delegation.cache_files import CacheFolder, is_entry, pieces_of
from delegraph.delegation.configuration import CACHE_VARIABLE, cache_folder, configuration
from delegraph.delegation.hashing import hex_digest
from delegraph.errors import ArgumentError, DelegateError
from delegraph.log import Logger

if TYPE_CHECKING:
    from pathlib import Path

    from delegraph.delegation.cache_entries import CacheEntry
    from delegraph.delegation.cache_files import AnyPath

logger = Logger(__name__)

LIMIT = 4_000_000_000
"""Default maximal number of bytes of all entries in a cache folder."""

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_PATIENCE = 600
"""Seconds to wait while another process makes the same entry."""


class BlobCache:
    """Cache on disk for files that one version of one delegate made, such as compiled partitions.

    If the folder cannot be used (it belongs to another user, the disk is full), entries are stored
    in a temporary folder. It is removed when this process ends; the log says so once.

    Args:
        namespace: the delegate's name; letters, digits, ``.``, ``_``, ``-``.
        version: text of everything that entries depend on besides their key, such as the versions
            of the delegate and its engine, and the device. Entries of other versions are never
            returned.
        folder: the cache folder; None means ``$DELEGRAPH_CACHE``, else the configured folder, else
            the user's cache folder.
        limit: maximal number of bytes of all delegates' entries in the folder together; None means
            the configured size, else :data:`LIMIT`.

    Attributes:
        root: the argument *folder*.

    Raises:
        ArgumentError: the namespace or the version has forbidden characters or is too long.
    """

    def __init__(
        self, namespace: str, version: str, folder: AnyPath | None = None, limit: int | None = None
    ) -> None:
        for what, name in (("namespace", namespace), ("version", version)):
            if not re.fullmatch(_NAME, name):
                raise ArgumentError(
                    f"the {what} of a cache is {name!r}, expected up to 100 letters, digits, '.', "
                    "'_' or '-', the first of them a letter or digit"
                )
        self.namespace = namespace
        self.version = version
        self.root = folder
        self._limit = configuration().cache_size or LIMIT if limit is None else limit

    @property
    def folder(self) -> Path:
        """Folder of the entries of this namespace and version; it may not exist yet.

        Raises:
            FileNotFoundError: this user has no home.
        """
        from pathlib import Path  # lazy import, as its import takes milliseconds

        return Path(self.root or cache_folder(), self._subfolder)

    def get_or_make(self, key: str, make: Callable[[], bytes]) -> Path:
        """Return the file for *key*; if there is none, write the result of *make* to a new file.

        If several processes ask for the same key, one makes the content and the others wait.

        Args:
            key: text of everything that the content depends on, such as ``PartitionModel.digest``
                and options.
            make: function that returns the content; called at most once.

        Returns:
            A complete and undamaged file. Open it at once, since the cache may remove it to make
            room, and never write to it.

        Raises:
            Exception: an error of *make*.
            DelegateError: *make* returned no bytes, or no folder can be written.
        """
        found = self.get(key)
        if found is not None:
            return found
        with self._alone(key):
            return self.get(key) or self.put(key, _content(make()))

    def read_or_make(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the content for *key*; if there is none, store and return the result of *make*.

        Use this method for content that is read as a whole. If no file can be written, the content
        is returned nevertheless, and the log says that it is not stored.

        Args:
            key: text of everything that the content depends on.
            make: function that returns the content; called at most once.

        Raises:
            Exception: an error of *make*.
            DelegateError: *make* returned no bytes.
        """
        found = self.read(key)
        if found is not None:
            return found
        with self._alone(key):
            found = self.read(key)
            if found is None:
                found = _content(make())
                with contextlib.suppress(OSError):  # already logged
                    self._put_in_folder(key, found)
            return found

    def get(self, key: str) -> Path | None:
        """Return the file with the content for *key*, or None if the cache has none."""
        from pathlib import Path

        found = self._found(key)
        return None if found is None else Path(found[0])

    def read(self, key: str) -> bytes | None:
        """Return the content for *key*, or None if the cache has none."""
        found = self._found(key)
        return None if found is None else found[1]

    def _found(self, key: str) -> tuple[str, bytes] | None:
        for folder in self._folders():
            try:
                found = _checked_entry(folder, *self._shard_and_hash(key))
            except OSError as error:
                _warn(error)
            else:
                if found is not None:
                    return found
        return None

    def put(self, key: str, content: bytes) -> Path:
        """Write *content* to the cache under *key*, and return the file.

        Raises:
            DelegateError: no folder can be written.
        """
        from pathlib import Path

        with contextlib.suppress(OSError):  # already logged
            return Path(self._put_in_folder(key, content))
        name = self._name(key, content)
        try:
            folder = own_folder()
            folder.write(name, content)
        except OSError as error:
            import tempfile

            raise DelegateError(
                f"the compiled data, {len(content)} bytes, can be written neither to the cache nor "
                f"to {tempfile.gettempdir()!r}: {error.strerror or error}"
            ) from error
        return Path(folder.place(), name)

    def map(self, key: str) -> memoryview | None:
        """Return the content for *key* as read-only memory shared by processes; None if missing.

        Use this method for large content that is not to be copied. The content is not read here, so
        its digest is not checked. The caller must check it, and call :meth:`keep` with new content
        if it is damaged.
        """
        try:
            folder = CacheFolder(self.root or cache_folder())
            shard, key_hash = self._shard_and_hash(key)
            place, names = _names(folder, shard, key_hash)
            if not names:
                return None
            content = folder.map(f"{shard}/{names[0]}")
        except FileNotFoundError:  # the file has just been removed
            return None
        except OSError as error:
            _warn(error)
            return None
        _mark_as_used(os.path.join(place, names[0]))
        return content

    def keep(
        self, key: str, content: bytes | Sequence[memoryview], digest: str | None = None
    ) -> bool:
        """Write *content* to the cache under *key*; return whether it is stored now.

        Args:
            key: key of the content.
            content: the content, as a whole or in pieces, which need not be joined in memory.
            digest: 64 hexadecimal digits for the file's name, if only :meth:`map` reads the
                content; None for the content's SHA-256.

        Returns:
            Whether the content is stored; if not, the log says why, once.
        """
        try:
            path = self._put_in_folder(key, content, digest)
            folder = CacheFolder(self.root or cache_folder())
            place, names = _names(folder, *self._shard_and_hash(key))
            for name in names:
                if name != os.path.basename(path):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(os.path.join(place, name))
        except OSError:  # already logged
            return False
        return True

    def entries(self) -> list[CacheEntry]:
        """Return the entries of this namespace and version, the most recently used first.

        Raises:
            OSError: the folder cannot be used.
        """
        from delegraph.delegation.cache_entries import cache_entries  # here: only tools list them

        return [
            entry
            for entry in cache_entries(self.root)
            if (entry.namespace, entry.version) == (self.namespace, self.version)
        ]

    def _put_in_folder(
        self, key: str, content: bytes | Sequence[memoryview], digest: str | None = None
    ) -> str:
        """Write *content* to the cache folder for later processes; return the file's path.

        Raises:
            OSError: the content cannot be stored; the log says why.
        """
        from delegraph.delegation.cache_entries import trim  # here: most processes only read

        name = self._name(key, content, digest)
        try:
            folder = CacheFolder(self.root or cache_folder())
            folder.write(name, content)
            path = os.path.join(folder.place(), name)
            trim(folder, self._limit, os.path.getsize(path))
            return path
        except OSError as error:
            _warn(error)
            raise

    def _name(
        self, key: str, content: bytes | Sequence[memoryview], digest: str | None = None
    ) -> str:
        shard, key_hash = self._shard_and_hash(key)
        return f"{shard}/{key_hash}-{digest or _digest(content)}.blob"

    def _shard_and_hash(self, key: str) -> tuple[str, str]:
        """Return the folder of the files for *key*, and the hash of *key* in their names."""
        key_hash = _digest(f"{self._subfolder}\0{key}".encode())[:32]
        return f"{self._subfolder}/{key_hash[:2]}", key_hash

    @property
    def _subfolder(self) -> str:
        return f"{self.namespace}/{self.version}"

    def _folders(self) -> Iterator[CacheFolder]:
        """Yield the folders that may have entries: the cache folder, then its replacement."""
        try:
            yield CacheFolder(self.root or cache_folder())
        except OSError as error:  # the cache's folder is unknown
            _warn(error)
        if own_folder.cache_info().currsize:
            yield own_folder()

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """Context in which only this process makes the content for *key*; else the log says so."""
        from filelock import FileLock, Timeout

        with contextlib.ExitStack() as stack:
            try:
                shard, _ = self._shard_and_hash(key)
                folder = CacheFolder(self.root or cache_folder()).made(self._subfolder)
                path = os.path.join(folder, f"{os.path.basename(shard)}.lock")
                lock = FileLock(path, timeout=_PATIENCE, mode=0o644)
                stack.enter_context(lock)
            except Timeout:
                logger.warning("waited %d s for data that another process is making", _PATIENCE)
            except OSError as error:
                _warn(error)
            yield


def _names(folder: CacheFolder, shard: str, key_hash: str) -> tuple[str, list[str]]:
    """Return the path of a shard, and its file names for a key; several if one was damaged.

    Raises:
        OSError: the folder cannot be read, or others may write it.
    """
    place = os.path.join(folder.place(), shard)
    try:
        names = os.listdir(place)
    except (FileNotFoundError, NotADirectoryError):
        return place, []
    start = f"{key_hash}-"
    return place, sorted(name for name in names if name.startswith(start) and is_entry(name))


def _checked_entry(folder: CacheFolder, shard: str, key_hash: str) -> tuple[str, bytes] | None:
    """Return path and content of the file for a key; None if it is damaged or missing.

    Raises:
        OSError: the file cannot be used.
    """
    try:
        place, names = _names(folder, shard, key_hash)
    except (FileNotFoundError, NotADirectoryError):
        return None
    for name in names:
        path = os.path.join(place, name)
        try:
            content = folder.read(f"{shard}/{name}")
        except FileNotFoundError:  # the file has just been removed
            continue
        if name == f"{key_hash}-{_digest(content)}.blob":
            _mark_as_used(path)
            return path, content
        logger.warning("%s is damaged; it is made again", path)
        with contextlib.suppress(OSError):
            os.unlink(path)
    return None


def _digest(content: bytes | Sequence[memoryview]) -> str:
    return hex_digest(*pieces_of(content))


def _mark_as_used(path: str) -> None:
    with contextlib.suppress(OSError):  # a read-only cache can still be read
        os.utime(path)


@cache
def own_folder() -> CacheFolder:
    """Return this process's temporary cache folder, which is deleted when the process ends."""
    import atexit  # lazy import: few caches cannot be written
    import shutil
    import tempfile
    from pathlib import Path

    path = tempfile.mkdtemp(prefix="delegraph-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return CacheFolder(Path(path))


def _content(made: object) -> bytes:
    if not isinstance(made, bytes | bytearray | memoryview):
        raise DelegateError(f"the content of a cache's entry is {type(made).__name__}, not bytes")
    return bytes(made)


warned_of: set[str] = set()
"""Messages that have already been logged."""


def _warn(error: OSError) -> None:
    """Log that the cache or one of its files cannot be used; log each message once."""
    text = f"{error.filename or ''} {error.strerror or error}".strip()
    if text not in warned_of:
        warned_of.add(text)
        message = (
            "the cache cannot be used: %s; its content is made again in each process; "
            "%s=FOLDER names another folder"
        )
        logger.warning(message, text, CACHE_VARIABLE)
