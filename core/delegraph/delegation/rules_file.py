"""Placement rules in a TOML file: one ``[[rule]]`` table each, its keys those of the rule.

Example:
    ::

        [[rule]]
        action = "exclude"
        operators = ["SOFTMAX", "Flex*"]

        [[rule]]
        action = "pin"
        delegate = "numba_cpu"
        nodes = [3, "10-12"]
"""

from __future__ import annotations

import sys
from typing import Any

from delegraph.delegation.rules import PlacementRule, PlacementRules
from delegraph.errors import ArgumentError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEYS = ("action", "delegate", "nodes", "operators", "tensors", "subgraph", "signature")


def read_rules(path: str) -> PlacementRules:
    """Return the rules of a file.

    Raises:
        ArgumentError: it cannot be read, is not TOML, or holds something else than rules; the
            message names the file and the rule.
    """
    tables = _tables(path)
    rules = tuple(_rule(table, f"{path}, rule {i + 1}") for i, table in enumerate(tables))
    return PlacementRules(rules, path)


def _tables(path: str) -> list[Any]:
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise ArgumentError(f"rules file {path!r} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"rules file {path!r} is not TOML: {error}") from error
    others = sorted(content.keys() - {"rule"})
    if others:
        raise ArgumentError(f"{path}: no key {others[0]!r} here; each rule is a [[rule]] table")
    tables = content.get("rule", [])
    if not isinstance(tables, list):
        raise ArgumentError(f"{path}: a rule is a [[rule]] table, with two brackets")
    return tables


def _rule(table: Any, where: str) -> PlacementRule:
    if not isinstance(table, dict):
        raise ArgumentError(f"{where}: a rule is a [[rule]] table, not {table!r}")
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise ArgumentError(f"{where}: no key {unknown[0]!r}; valid keys: {', '.join(_KEYS)}")
    if "action" not in table:
        raise ArgumentError(f"{where}: action is missing; it is 'exclude' or 'pin'")
    try:
        return PlacementRule(**table)
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from None
