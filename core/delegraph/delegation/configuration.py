"""The user's configuration file, ``delegraph.toml``: defaults of interpreters and caches.

Arguments, command line options and environment variables override the file. Example:
    ::

        delegates = ["openvino:device=GPU", "numba_cpu"]

        [plugins]
        allow = ["openvino", "numba_cpu"]

        [cache]
        folder = "~/compiled"
        size = "2GB"

The file decides which code runs, so it is read only if no other user but root can write it; see
:mod:`delegraph.delegation.cache_files`. The module is in a low layer because the cache of compiled
partitions reads the configuration.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from delegraph.delegation.cache_files import read_safe, user_cache_folder, user_config_folder
from delegraph.errors import ConfigurationError, did_you_mean
from delegraph.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

CONFIG_VARIABLE = "DELEGRAPH_CONFIG"
"""Name of the environment variable with the file's path; an empty value means no file."""

CACHE_VARIABLE = "DELEGRAPH_CACHE"
"""Name of the environment variable with the path of the cache folder."""

DEFAULT_DELEGATES_VARIABLE = "DELEGRAPH_DEFAULT_DELEGATES"
"""Name of the environment variable with the default delegates, separated by spaces.

An empty value means no default delegates.
"""

FILE_NAME = "delegraph.toml"

_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings of a configuration file; None for each setting that the file does not have.

    Attributes:
        path: the file that was read; None if there is no file.
        delegates: delegates of interpreters that are created without delegates, in order, with
            their options.
        allow: the only plugins that may be used.
        disable: plugins that may not be used.
        cache_folder: folder in which compiled partitions are kept.
        cache_size: maximal number of bytes of all compiled partitions.
    """

    path: Path | None = None
    delegates: tuple[str, ...] | None = None
    allow: tuple[str, ...] | None = None
    disable: tuple[str, ...] | None = None
    cache_folder: Path | None = None
    cache_size: int | None = None


def configuration() -> Configuration:
    """Return the settings of the user's configuration file, which is read once per process.

    Raises:
        ConfigurationError: the file cannot be read or has a mistake, or others may write it.
    """
    return configuration_of(os.environ.get(CONFIG_VARIABLE))


def default_delegates() -> tuple[tuple[str, ...] | None, str]:
    """Return the delegates of interpreters that name none, and the setting with these delegates.

    The environment variable overrides the configuration file. Delegates are None if neither sets
    them.

    Raises:
        ConfigurationError: the file cannot be read or has a mistake, or others may write it.
    """
    text = os.environ.get(DEFAULT_DELEGATES_VARIABLE)
    if text is not None:
        return tuple(text.split()), DEFAULT_DELEGATES_VARIABLE
    user = configuration()
    return user.delegates, f"{_title(user.path)}: delegates"


def cache_folder() -> str:
    """Return the cache folder: ``$DELEGRAPH_CACHE``, else the configured one, else the user's.

    Raises:
        ConfigurationError: the configuration file has a mistake.
        FileNotFoundError: this user has no home.
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return given if os.path.isabs(given) else os.path.join(os.getcwd(), given)
    configured = configuration().cache_folder
    return str(configured or os.path.join(user_cache_folder(), "compiled"))


@cache
def configuration_of(given: str | None) -> Configuration:
    """Settings of the configuration file *given* by the environment; read once per process."""
    path = configuration_path(given)
    if path is None or (given is None and not os.path.lexists(path)):
        return Configuration()
    from pathlib import Path  # lazy import: it takes milliseconds, and most users have no file

    return _read(Path(path))


def configuration_path(given: str | None) -> str | None:
    """Path of the configuration file, which need not exist; None if no file is to be read.

    Args:
        given: the value of :data:`CONFIG_VARIABLE`; None if it is not set.
    """
    if given is not None:
        is_whole = not given or os.path.isabs(given)
        return (given if is_whole else os.path.join(os.getcwd(), given)) or None
    try:
        return os.path.join(user_config_folder(), FILE_NAME)
    except FileNotFoundError:  # this user has no home folder
        return None


def byte_count(text: str) -> int:
    """Return the number of bytes for ``4096``, ``1.5GB`` or ``256K``; K is 1024, kB 1000 bytes.

    >>> byte_count("1.5GB"), byte_count("1.5K")
    (1500000000, 1536)

    Raises:
        ValueError: the text has another form.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMG]?B?)", text.upper())
    if match is None:
        raise ValueError(text)
    return int(float(match[1]) * _UNITS[match[2]])


def _read(path: Path) -> Configuration:
    try:
        content = parsed_toml(read_safe(path))
    except OSError as error:
        where = "" if error.filename in (None, str(path)) else f"{error.filename} "
        raise _error(path, f"is not read: {where}{error.strerror or error}") from error
    except ValueError as error:
        raise _error(path, f"is not TOML: {error}") from error
    values: dict[str, Any] = {}
    mistakes = []
    flat = _flat(content)
    for key, value in flat.items():
        if key not in _SETTINGS:
            mistakes.append(f"no key {key!r} is known{did_you_mean(key, sorted(_SETTINGS))}")
            continue
        attribute, expected, read = _SETTINGS[key]
        try:
            values[attribute] = read(value)
        except (TypeError, ValueError):
            mistakes.append(f"{key} is {value!r}, expected {expected}")
    if not flat.keys() <= _SETTINGS.keys():
        mistakes.append(f"valid keys: {', '.join(sorted(_SETTINGS))}")
    if mistakes:
        raise _error(path, "; ".join(mistakes))
    return Configuration(path, **values)


def parsed_toml(content: bytes) -> dict[str, Any]:
    """Return the tables of a TOML file with this content.

    Raises:
        ValueError: the content is not TOML in UTF-8.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # lazy import, as most users have no file
    else:
        import tomli as tomllib
    return tomllib.loads(content.decode())


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a configuration file by names such as ``cache.size``."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict) and any(name.startswith(f"{key}.") for name in _SETTINGS):
            flat |= {f"{key}.{name}": each for name, each in value.items()}
        else:
            flat[key] = value
    return flat


def _error(path: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{_title(path)}: {problem} ({CONFIG_VARIABLE}= reads no file)")


def _title(path: Path | None) -> str:
    return f"configuration file {str(path)!r}"


# -- settings: each takes the value that the file has and returns the one of Configuration ---------


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise TypeError(value)
    return tuple(value)


def _folder(value: object) -> Path:
    from pathlib import Path

    path = Path(os.path.expanduser(value)) if isinstance(value, str) else Path()
    if not path.is_absolute():
        raise ValueError(value)
    return path


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(value)
    size = byte_count(str(value))
    if size == 0:
        raise ValueError(value)
    return size


_SETTINGS: dict[str, tuple[str, str, Callable[[object], Any]]] = {
    "delegates": ("delegates", "a list of delegates, such as ['numba_cpu:exact=false']", _names),
    "plugins.allow": ("allow", "a list of plugins, such as ['flex', 'dist:plugin']", _names),
    "plugins.disable": ("disable", "a list of plugins, such as ['flex', 'dist:plugin']", _names),
    "cache.folder": ("cache_folder", "a whole path, such as '/var/cache/me' or '~/cache'", _folder),
    "cache.size": ("cache_size", "bytes above 0, such as 4096, '512MB' or '2GB'", _size),
}
"""For each key: attribute of ``Configuration``, kind of value in words, and reader function."""
