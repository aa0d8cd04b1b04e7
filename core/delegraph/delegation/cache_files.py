"""Reads and writes cache files safely: only this user or root may have written them.

Files of delegates decide which code runs in this process: they contain compiled code, or permission
to load native code. A user who can write one of these files can run code here. A checksum does not
help, since that user can compute it. So files and folders are used only if no user but this one and
root may write them:

- The file, the cache's own folder and all folders below it belong to this user or to root. Neither
  the group nor others may write them.
- The folders above the cache's folder belong to this user or to root as well. Other users may write
  only to folders in which they cannot rename files of others (sticky bit, as in ``/tmp``). A group
  may write only if it is root's or this user's own group: named like the user, without other
  members.
- Symbolic links above the cache's folder are followed if they belong to this user or to root;
  inside it, links are rejected.

Folders are checked from the top down. No other user can change a folder that was found safe, so the
checked folder is the one that is opened. A file is checked after it was opened.

On Windows none of this is checked; there, the access rights of the user's profile must suffice.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Literal

from delegraph.lazy_dataclass import dataclass
from delegraph.log import Logger

if TYPE_CHECKING:
    AnyPath = str | os.PathLike[str]

logger = Logger(__name__)

UNFINISHED = ".unfinished"
"""Ending of the names of half-written files; any process may remove an old one."""

USES_VARIABLE = "_DELEGRAPH_CACHE_USES"
"""Environment variable with the path of a log of uses; see ``cache_uses``."""

_MAX_LINKS = 40
"""Largest number of symbolic links that are followed in a path, the same as in Linux."""


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A folder to which only this user may write; it need not exist.

    On failure, methods raise ``OSError`` whose ``filename`` and ``strerror`` suit a message. A file
    that exists but is not safe to use raises ``PermissionError``.

    Attributes:
        path: the folder; absolute.
    """

    path: AnyPath

    def place(self) -> str:
        """Real path of the folder, after following symbolic links.

        Raises:
            FileNotFoundError: the folder does not exist.
            OSError: other users may write or replace the folder.
        """
        place = _resolved(os.fspath(self.path))
        _require_private(place, os.lstat(place))
        return place

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Args:
            name: path of the file in this folder, with ``/`` between folders:
                ``avx2-0123/moves.kernels``.

        Raises:
            FileNotFoundError: the file does not exist.
            OSError: the file cannot be read, or others may have written it.
        """
        with self._opened(name) as file:
            return file.read()

    def map(self, name: str) -> memoryview:
        """Return the content of a file as read-only mapped memory, which processes share.

        The memory stays valid if the cache replaces or removes the file.

        Args:
            name: path of the file in this folder, with ``/`` between folders.

        Raises:
            FileNotFoundError: the file does not exist.
            OSError: the file cannot be mapped, or others may have written it.
        """
        with self._opened(name) as file:
            if not os.fstat(file.fileno()).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        """Yield the opened file *name*, after checking that only this user can have written it."""
        place = self.place()
        *folders, last = name.split("/")
        for folder in folders:
            place = os.path.join(place, folder)
            _require_private(place, os.lstat(place))
        path = os.path.join(place, last)
        with open(path, "rb", opener=open_itself) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _refusal(path, "is no regular file")
            _require_private(path, status)
            logger.debug("read %s", path)
            _log_use("read", path)
            yield file

    def write(self, name: str, content: bytes | Sequence[memoryview]) -> None:
        """Write a file atomically, so that no reader gets a part of it; create missing folders.

        An existing file is replaced by a new file.

        Args:
            name: path of the file in this folder, with ``/`` between folders.
            content: new content of the file, as a whole or in pieces.

        Raises:
            OSError: the file cannot be written, or others may write to its folder.
        """
        folder, _, last = name.rpartition("/")
        path = os.path.join(self.made(folder), last)
        replace_file(path, content)
        _log_use("written", path)
        logger.debug("wrote %s, %d bytes", path, sum(map(len, pieces_of(content))))

    def made(self, name: str) -> str:
        """Return the path of a folder inside this one; create both folders if missing.

        Args:
            name: path of the inner folder, with ``/`` between folders; empty means this folder.

        Raises:
            OSError: the folder cannot be made, or others may write to it.
        """
        _made(os.fspath(self.path))
        place = self.place()
        for folder in name.split("/") if name else ():
            place = os.path.join(place, folder)
            with contextlib.suppress(FileExistsError):
                os.mkdir(place, 0o755)
            _require_private(place, os.lstat(place))
        return place


def read_safe(path: AnyPath) -> bytes:
    """Return the content of a file, checking that only this user or root can write it.

    Use this function for files written by hand, such as the configuration. The file may be a link,
    and may be writable by a group without other members, as some umasks allow.

    Args:
        path: the file; absolute.

    Raises:
        FileNotFoundError: the file does not exist.
        OSError: the file cannot be read, or others may have written it.
    """
    path = os.fspath(path)
    with open(_resolved(path, "file"), "rb", opener=open_itself) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _refusal(path, "is no regular file")
        if hasattr(os, "geteuid"):
            _require_owner(path, status)
            _require_unshared(path, status)
        return file.read()


def user_cache_folder() -> str:
    """Path of Delegraph's folder among this user's caches; it may not exist.

    Raises:
        FileNotFoundError: this user has no home.
    """
    return _user_folder("user_cache_dir")


def user_config_folder() -> str:
    """Path of Delegraph's folder among this user's settings; it may not exist.

    Raises:
        FileNotFoundError: this user has no home.
    """
    return _user_folder("user_config_dir")


def _user_folder(kind: Literal["user_cache_dir", "user_config_dir"]) -> str:
    simple = _folder_of_linux(kind) if sys.platform == "linux" else None
    if simple is not None:
        return simple
    from platformdirs import PlatformDirs

    places = PlatformDirs("delegraph", appauthor=False, roaming=True, opinion=False)
    try:
        folder: str = getattr(places, kind)
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, "is not known: set HOME", "~") from error
    return folder


def _folder_of_linux(kind: str) -> str | None:
    """User's folder of *kind* on Linux; None if only ``platformdirs`` (a slow import) knows it.

    Source:
        XDG Base Directory Specification, Environment variables.
    """
    variable, folder = {
        "user_cache_dir": ("XDG_CACHE_HOME", ".cache"),
        "user_config_dir": ("XDG_CONFIG_HOME", ".config"),
    }[kind]
    home, place = os.environ.get("HOME", ""), os.environ.get(variable, "")
    if os.path.isabs(place):
        return os.path.join(place, "delegraph")
    is_ordinary = os.path.isabs(home) and "ANDROID_DATA" not in os.environ
    return os.path.join(home, folder, "delegraph") if is_ordinary else None


def _resolved(path: str, kind: Literal["folder", "file"] = "folder") -> str:
    """Return the real path of a folder or file, after checking each folder and link on the way."""
    if not hasattr(os, "geteuid"):
        os.lstat(path)
        return path
    place, ahead = "/", _parts(path)
    links = 0
    while ahead:
        part = ahead.pop()
        found = os.path.dirname(place) if part == ".." else os.path.join(place, part)
        status = os.lstat(found)
        if kind == "file" and not ahead and stat.S_ISREG(status.st_mode):
            return found  # the opener checks the file after opening it
        if not stat.S_ISLNK(status.st_mode):
            _require_safe(found, status)
            place = found
            continue
        _require_owner(found, status)
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(found)
        place = "/" if os.path.isabs(target) else place
        ahead += _parts(target)
    return place


def _parts(path: str) -> list[str]:
    """Return the names in a path, last name first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _made(path: str) -> str:
    """Return the real path of a folder; create the folder and its parents if missing."""
    try:
        return _resolved(path)
    except FileNotFoundError:
        folder, name = os.path.split(path.rstrip("/"))
        parent = _made(folder)
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(parent, name), 0o755)
        return _resolved(path)  # another process may have created the folder


def is_entry(name: str) -> bool:
    """Whether a file has the name of an entry: hash of a key, and digest of the content."""
    key, _, digest = name.removesuffix(".blob").partition("-")
    is_named = name.endswith(".blob") and (len(key), len(digest)) == (32, 64)
    return is_named and not (key + digest).strip("0123456789abcdef")


def _log_use(verb: str, path: str) -> None:
    """Add *path* to the log of uses, if one is wanted; *verb* is ``read`` or ``written``."""
    log = os.environ.get(USES_VARIABLE)
    if log is not None:
        with contextlib.suppress(OSError), open(log, "ab", buffering=0) as file:
            file.write(f"{verb} {path}\n".encode("utf-8", "surrogateescape"))


def pieces_of(content: bytes | Sequence[memoryview]) -> Sequence[bytes | memoryview]:
    """Return the pieces of *content*; content in one piece is a list of one."""
    return [content] if isinstance(content, bytes | bytearray | memoryview) else content


def replace_file(path: AnyPath, content: bytes | Sequence[memoryview]) -> None:
    """Write *content* to a new file, then move the file to *path* in one step."""
    unfinished = f"{os.fspath(path)}.{os.urandom(4).hex()}{UNFINISHED}"
    try:
        # Only the owner may write it, whatever the umask; the umask decides who may read it.
        with open(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.writelines(pieces_of(content))
        os.replace(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        if isinstance(error, OSError):
            error.filename = str(path)  # the temporary name would not help users
        raise


def open_itself(name: str, flags: int) -> int:
    """Open the file *name*; do not follow a symbolic link, nor wait for a pipe's writer."""
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _require_private(place: str, status: os.stat_result) -> None:
    """Raise an error if another user owns or may write to the file or folder *place*."""
    if not hasattr(os, "geteuid"):
        return
    _require_owner(place, status)
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(place, "is a symbolic link")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refusal(place, f"may be written by others; 'chmod go-w {place}' ends that")


def _require_safe(place: str, status: os.stat_result) -> None:
    """Raise an error if another user could replace files or folders in the folder *place*."""
    _require_owner(place, status)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "is no folder", place)
    if not status.st_mode & stat.S_ISVTX:
        _require_unshared(place, status)


def _require_unshared(place: str, status: os.stat_result) -> None:
    """Raise an error if others may write to *place*, except through the user's or root's group."""
    by_group = status.st_mode & stat.S_IWGRP and not is_own_group(status.st_gid)
    if by_group or status.st_mode & stat.S_IWOTH:
        raise _refusal(place, f"may be written by others; 'chmod go-w {place}' ends that")


def _require_owner(place: str, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        owner, user = _user_name(status.st_uid), _user_name(os.geteuid())
        raise _refusal(place, f"belongs to user {owner}, not to {user}")


def _refusal(place: str, reason: str) -> PermissionError:
    return PermissionError(errno.EPERM, reason, place)


def _user_name(number: int) -> str:
    import pwd

    try:
        return repr(pwd.getpwuid(number).pw_name)
    except KeyError:
        return str(number)


def is_own_group(number: int) -> bool:
    """Whether a group has no members but this user and root."""
    import grp
    import pwd

    if number == 0:
        return True
    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user and not set(group.gr_mem) - {user}
