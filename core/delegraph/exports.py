"""Exports of a package, whose stub is read when the first of them is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import lazy_loader

from delegraph.collector import MANY, collector_paused


def exports_of(
    package: str, file: str, *same_named: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that exports the names of its stub.

    Code that imports a module of the package by its full name, as Delegraph itself does, reads no
    stub.

    Args:
        package: the package's ``__name__``.
        file: its ``__file__``; the stub is beside it.
        same_named: functions that have the name of the module that defines them. Importing such a
            module must not put it in the function's place.
    """
    if same_named:
        lazy_loader.attach(package, submod_attrs={name: [name] for name in same_named})
    attached: list[Any] = []

    def stub() -> Any:
        if not attached:
            attached.append(lazy_loader.attach(package, *read_stub(file)))
        return attached[0]

    def get(name: str) -> Any:
        lasting = 0 if attached else MANY  # objects of modules, many by the first use of an export
        with collector_paused(lasting):
            export, _, names = stub()
            return names if name == "__all__" else export(name)

    def names() -> list[str]:
        found: list[str] = stub()[1]()
        return found

    return get, names


def read_stub(file: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the submodules and, by module, the names that a package's stub exports.

    Each is a statement ``from .MODULE import NAME as NAME``. ``lazy_loader.attach_stub`` parses the
    stub as Python, which takes longer.
    """
    submodules: list[str] = []
    names: dict[str, list[str]] = {}
    with open(os.path.splitext(file)[0] + ".pyi", encoding="utf-8") as stub:
        statements = f"\n{stub.read()}".split("\nfrom .")[1:]
    for statement in statements:
        module, _, imported = statement.partition(" import ")
        name = imported.lstrip("( \n").partition(" ")[0]
        if module:
            names.setdefault(module, []).append(name)
        else:
            submodules.append(name)
    return submodules, names
