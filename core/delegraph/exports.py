"""Lazy exports of a package: its ``.pyi`` stub is read when the first name is looked up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import lazy_loader

from delegraph.collector import MANY, collector_paused


def exports_of(
    package: str, file: str, *same_named: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that exports the names in its stub.

    Importing a module of the package by its full name, as Delegraph does, does not read the stub.

    Args:
        package: the package's ``__name__``.
        file: the package's ``__file__``; the stub is in the same folder.
        same_named: exported functions with the same name as their module. Importing that module
            must not replace the function by the module.
    """
    if same_named:
        lazy_loader.attach(package, submod_attrs={name: [name] for name in same_named})
    attached: list[Any] = []

    def stub() -> Any:
        if not attached:
            attached.append(lazy_loader.attach(package, *read_stub(file)))
        return attached[0]

    def get(name: str) -> Any:
        # The first use of an export imports modules, which create many lasting objects.
        lasting = 0 if attached else MANY
        with collector_paused(lasting):
            export, _, names = stub()
            return names if name == "__all__" else export(name)

    def names() -> list[str]:
        found: list[str] = stub()[1]()
        return found

    return get, names


def read_stub(file: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return a stub's submodules, and a mapping from each module to the names it exports.

    The stub consists of statements ``from .MODULE import NAME as NAME``.
    ``lazy_loader.attach_stub`` is slower, because it parses the stub as Python.
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
