"""Reads placement rules from code or from a TOML file.

In a file, each rule is a ``[[rule]]`` table; its keys are the attributes of ``PlacementRule``.

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

import os
from collections.abc import Iterable
from typing import Any, TypeAlias

from delegraph.delegation.configuration import parsed_toml
from delegraph.delegation.rules import PlacementRule, PlacementRules
from delegraph.errors import ArgumentError

Rules: TypeAlias = str | os.PathLike[str] | Iterable[PlacementRule] | PlacementRules
"""Rules as users give them: the path of a TOML file, or rules made in code."""

_KEYS = ("action", "delegate", "nodes", "operators", "tensors", "subgraph", "signature")


def placement_rules(rules: Rules | None) -> PlacementRules:
    """Return the rules of a TOML file, given by its path, or rules made in code.

    There are no rules if *rules* is None.

    Raises:
        ArgumentError: the file cannot be read or has a mistake, or *rules* has something else than
            rules.
    """
    if rules is None:
        return PlacementRules()
    if isinstance(rules, PlacementRules):
        return rules
    if isinstance(rules, str | os.PathLike):
        return read_rules(os.fspath(rules))
    if isinstance(rules, PlacementRule) or not isinstance(rules, Iterable):
        raise ArgumentError(f"rules is a list of PlacementRule or a file, not {rules!r}")
    found = tuple(rules)
    for rule in found:
        if not isinstance(rule, PlacementRule):
            raise ArgumentError(f"rules is a list of PlacementRule, and one is {rule!r}")
    return PlacementRules(found)


def read_rules(path: str) -> PlacementRules:
    """Return the rules in the TOML file *path*.

    Raises:
        ArgumentError: the file cannot be read, is not TOML, or has other content than rules; the
            message names the file and the rule.
    """
    tables = _tables(path)
    rules = tuple(_rule(table, f"{path}, rule {i + 1}") for i, table in enumerate(tables))
    return PlacementRules(rules, path)


def rules_text(rules: Iterable[PlacementRule]) -> str:
    """Return the text of a TOML file with these rules.

    >>> print(rules_text([PlacementRule("exclude", "npu", nodes=["3-5", 9])]))
    [[rule]]
    action = "exclude"
    delegate = "npu"
    nodes = ["3-5", "9"]
    <BLANKLINE>
    """
    return "\n".join(map(_table_text, rules))


def _table_text(rule: PlacementRule) -> str:
    lines = ["[[rule]]"]
    for key in _KEYS:
        value: Any = getattr(rule, key)
        if key == "nodes":
            value = [f"{r.start}-{r[-1]}" if len(r) > 1 else str(r.start) for r in value]
        if value is not None and value != () and value != []:
            lines.append(f"{key} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: int | str | Iterable[str]) -> str:
    """Return *value* as TOML text."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):  # like JSON except for one character; without surrogates
        import json  # lazy import: for messages only

        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_toml, value))}]"


def _tables(path: str) -> list[Any]:
    try:
        with open(path, "rb") as file:
            content = parsed_toml(file.read())
    except OSError as error:
        raise ArgumentError(f"rules file {path!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
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
