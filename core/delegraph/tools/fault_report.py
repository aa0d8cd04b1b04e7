"""A report about this machine for other people, without paths that reveal the user."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from delegraph.delegation.cache_files import user_cache_folder
from delegraph.errors import printable

_QUOTED = re.compile(r"""(['"])((?:~|[A-Za-z]:)?[\\/][^'"]*)\1""")
"""Pattern of a path in quotation marks, which may have blanks in it."""

_BARE = re.compile(r"""(?<![\w.>/\\-])(?!//)(?:~|[A-Za-z]:)?[\\/][^\s'",;:()<>]+""")
"""Pattern of a path in a text; a slash after a word, as in ADD/SUB, begins no path."""

HEAD = """\
# A fault of Delegraph

What I did, what I expected and what happened:

...

"""


def fault_report(answer: Mapping[str, Any]) -> str:
    """Return the answer of ``delegraph doctor --json`` as Markdown, without private paths.

    Folders of the Python environment and of Delegraph's cache get short names; other paths become
    ``<path>``.
    """
    shown = without_paths(answer)
    lines = [f"- {f['level']}: {f['subject']}: {f['text']}" for f in shown["findings"]]
    findings = "\n".join(["## Findings", "", *(lines or ["none"])])
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    return f"{HEAD}{findings}\n\n## Machine\n\n```json\n{text}\n```\n"


def without_paths(value: Any) -> Any:
    """Return JSON data with the paths in all of its texts replaced.

    >>> without_paths({"text": "cannot read /home/ann/secret.tflite: ADD/SUB"})
    {'text': 'cannot read <path>: ADD/SUB'}
    """
    if isinstance(value, Mapping):
        return {key: without_paths(item) for key, item in value.items()}
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, Sequence):
        return [without_paths(item) for item in value]
    return value


def _shown(text: str) -> str:
    """Return *text* without paths; if the whole text is a path, it may contain blanks."""
    if os.path.isabs(text):
        return _name(text)
    text = _QUOTED.sub(lambda found: f"{found[1]}{_name(found[2])}{found[1]}", text)
    for folder, name in _named_folders().items():  # its path may have blanks in it
        text = text.replace(folder, name)
    return printable(_BARE.sub(lambda found: _name(found[0]), text))


def _name(path: str) -> str:
    """Return a short name for a path in a known folder; ``<path>`` for other paths."""
    for folder, name in _named_folders().items():
        if path == folder or path.startswith(folder + os.sep):
            return f"{name}{path[len(folder) :]}"
    return "<path>"


def _named_folders() -> dict[str, str]:
    folders = {sys.prefix: "<environment>"}
    with contextlib.suppress(FileNotFoundError):  # this user has no home
        folders[user_cache_folder()] = "<cache>"
    return {str(Path(folder)): name for folder, name in folders.items() if len(folder) > 1}
