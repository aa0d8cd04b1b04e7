"""The mutants of a module: where each one stands, what it is called, and its compiled code."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from mutation.operators import replacements

LONGEST_EXCERPT = 100
"""Characters of source up to which a mutant is shown with what surrounds the change."""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = Function | ast.ClassDef

SKIPPED_FIELDS = {"annotation", "decorator_list", "returns"}
"""Declarations, which mypy and readers check."""

SKIPPED_NAMES = {"TYPE_CHECKING", "version_info", "platform"}
"""Conditions on these choose code that this Python does not run."""


class Place(NamedTuple):
    """A field of a syntax node, or an item of it, in which a node can be replaced."""

    parent: ast.AST
    field: str
    position: int | None

    def put(self, node: ast.AST) -> None:
        """Replace the node at this place by *node*."""
        if self.position is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.position] = node


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        name: says the change by itself, and stays when lines move:
            ``Rows.field: offsets == 0 -> offsets != 0``. A second one alike ends in ``#2``.
        lines: of the statement, or of the head of the ``if`` or loop, that is changed.
        is_late: whether it lies in the body of a function, which can be replaced after import.
        digest: of the function around it, so that a verdict holds while that is the same.
    """

    module: Module
    name: str
    lines: range
    is_late: bool
    digest: str
    place: Place
    node: ast.AST
    replacement: ast.AST

    def code(self) -> CodeType:
        """Return the compiled module with this change.

        Raises:
            SyntaxError: Python does not take it, for example a ``*`` name that is not used.
        """
        self.place.put(self.replacement)
        try:
            return compile(self.module.tree, str(self.module.path), "exec", dont_inherit=True)
        finally:
            self.place.put(self.node)


class Module:
    """A source file and its mutants.

    Attributes:
        name: as imported.
        path: absolute.
        tree: the syntax tree; it is changed for the moment in which a mutant is compiled.
        mutants: all of them, in the order of the source.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path.resolve()
        self.tree = ast.parse(self.path.read_text(encoding="utf-8"))
        self.mutants = self._mutants()

    def _mutants(self) -> list[Mutant]:
        seen: Counter[str] = Counter()
        found = []
        for around, place, node in _nodes(self.tree):
            for replacement in replacements(node):
                name = _name(around, place, node, replacement)
                seen[name] += 1
                found.append(
                    Mutant(
                        self,
                        name if seen[name] == 1 else f"{name} #{seen[name]}",
                        _lines(around, node),
                        is_late=_is_late(around, node),
                        digest=_digest(around, node),
                        place=place,
                        node=node,
                        replacement=replacement,
                    )
                )
        return found


def _nodes(
    node: ast.AST, around: tuple[ast.AST, ...] = ()
) -> Iterator[tuple[tuple[ast.AST, ...], Place, ast.AST]]:
    """Yield the replaceable nodes below *node*, each with its ancestors."""
    around = (*around, node)
    for field, value in ast.iter_fields(node):
        if field in SKIPPED_FIELDS:
            continue
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, item in items:
            if isinstance(item, ast.AST) and not _is_skipped(node, field, item):
                yield around, Place(node, field, index), item
                yield from _nodes(item, around)


def _is_skipped(parent: ast.AST, field: str, node: ast.AST) -> bool:
    """Whether tests cannot notice changes of a node, such as messages or checks for mypy."""
    if isinstance(node, ast.Assert | ast.JoinedStr):
        return True
    if isinstance(parent, ast.Raise) or _is_type_alias(parent):
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: as assertions
        return True
    if isinstance(node, ast.Constant) and isinstance(parent, ast.Compare):
        return not any(isinstance(op, ast.Eq | ast.NotEq) for op in parent.ops)  # < 1 is <= 0
    if isinstance(node, ast.If):
        names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node.test)}
        return bool(names & SKIPPED_NAMES)
    return False


def _is_type_alias(node: ast.AST) -> bool:
    """Whether a node defines a type alias: ``Key = tuple[str, int] | None``."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    name = target.id.lstrip("_") if isinstance(target, ast.Name) else ""
    return name[:1].isupper() and not name.isupper()


def _name(around: tuple[ast.AST, ...], place: Place, node: ast.AST, replacement: ast.AST) -> str:
    shown = _excerpt(around, node)
    before = _line(shown)
    if shown is node:
        after = _line(replacement)
    else:
        place.put(replacement)
        after = _line(shown)
        place.put(node)
    scope = ".".join(_scope_name(n) for n in around if isinstance(n, Scope))
    return f"{scope or 'module'}: {before} -> {after}"


def _scope_name(scope: Scope) -> str:
    return "lambda" if isinstance(scope, ast.Lambda) else scope.name


def _excerpt(around: tuple[ast.AST, ...], node: ast.AST) -> ast.AST:
    """Return the largest short ancestor of *node* within its statement, to show it."""
    shown = node
    for outer in reversed(around):
        if not isinstance(outer, ast.expr | ast.stmt | ast.keyword) or _is_compound(outer):
            break
        if len(_line(outer)) > LONGEST_EXCERPT:
            break
        shown = outer
    return shown


def _is_compound(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt) and hasattr(node, "body")


def _line(node: ast.AST) -> str:
    """Return the source of a node on one line; for a compound statement, its first line."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return " ".join(ast.unparse(node).split())


def _lines(around: tuple[ast.AST, ...], node: ast.AST) -> range:
    """Return the lines that run whenever the changed statement runs."""
    holders = (ast.stmt, ast.excepthandler, ast.match_case, ast.Module)
    holder = next(n for n in (node, *reversed(around)) if isinstance(n, holders))
    if isinstance(holder, ast.Module):
        return range(1, 2)
    if isinstance(holder, ast.match_case):
        return range(holder.pattern.lineno, holder.body[0].lineno)
    body: list[ast.stmt] = getattr(holder, "body", [])
    if body:
        return range(holder.lineno, max(holder.lineno + 1, body[0].lineno))
    return range(holder.lineno, (holder.end_lineno or holder.lineno) + 1)


def _is_late(around: tuple[ast.AST, ...], node: ast.AST) -> bool:
    """Whether the change is in a function's body; defaults are computed at import."""
    for outer, inner in pairwise((*around, node)):
        if isinstance(outer, Function):
            return inner in (outer.body if isinstance(outer.body, list) else [outer.body])
    return False


def _digest(around: tuple[ast.AST, ...], node: ast.AST) -> str:
    outermost = next((n for n in around if isinstance(n, Function)), node)
    return hashlib.sha256(ast.unparse(outermost).encode()).hexdigest()[:16]
