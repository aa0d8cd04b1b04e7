"""Files of compiled kernels: a line of JSON, then the object code of each kernel.

A file is checked whole before any of it is used: a damaged one is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

Objects = dict[str, tuple[str, bytes]]
"""Kernel name to the symbol of its entry and its object code."""


def write_objects(path: Path, objects: Mapping[str, tuple[str, bytes]]) -> None:
    """Write a file in one step, so that no reader ever finds half of it."""
    body = b"".join(code for _, code in objects.values())
    header = {
        "sha256": hashlib.sha256(body).hexdigest(),
        "kernels": [[name, symbol, len(code)] for name, (symbol, code) in objects.items()],
    }
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        unfinished.write_bytes(json.dumps(header).encode() + b"\n" + body)
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def read_objects(path: Path) -> Objects | None:
    """Return what a file holds; None when there is none, or it is damaged."""
    try:
        content = path.read_bytes()
        line, _, body = content.partition(b"\n")
        header = json.loads(line)
        if hashlib.sha256(body).hexdigest() != header["sha256"]:
            return None
        objects, start = {}, 0
        for name, symbol, size in header["kernels"]:
            objects[str(name)] = (str(symbol), body[start : start + int(size)])
            start += int(size)
        return objects
    except (OSError, ValueError, KeyError, TypeError):
        return None
