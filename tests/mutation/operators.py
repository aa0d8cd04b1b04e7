"""What a mutant changes: each operator takes a node of the syntax tree and offers replacements.

A replacement is a fault that people make: a boundary shifted by one, a condition the wrong way
round, a call or a `raise` forgotten. Texts are left alone, so that tests need not pin messages.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import TypeVar

N = TypeVar("N", bound=ast.AST)

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}

CONVERSIONS = {
    "bool", "bytes", "dict", "float", "frozenset", "getLogger", "int", "iter", "len", "list",
    "repr", "set", "sorted", "str", "sum", "tuple", "type",
}  # fmt: skip
"""Calls whose argument in their place is either the same to all who use it or fails at once."""

OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}

DELETED = (ast.Assign, ast.AugAssign, ast.Break, ast.Continue, ast.Delete, ast.Expr, ast.Raise)


def changed(node: N, **fields: object) -> N:
    """Return a copy of *node* with some fields replaced."""
    twin = copy.copy(node)
    for name, value in fields.items():
        setattr(twin, name, value)
    return twin


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield replacements of *node*; ``pass`` replaces a deleted statement."""
    for kind, offer in OPERATORS:
        if isinstance(node, kind):
            yield from offer(node)
    if isinstance(node, DELETED) and _matters(node):
        yield ast.copy_location(ast.Pass(), node)


def _comparison(node: ast.Compare) -> Iterator[ast.AST]:
    for position, found in enumerate(node.ops):
        for other in COMPARISONS[type(found)]:
            yield changed(node, ops=[*node.ops[:position], other(), *node.ops[position + 1 :]])


def _and_or(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def _not(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _arithmetic(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    other = ARITHMETIC.get(type(node.op))
    is_text = isinstance(node, ast.BinOp) and any(
        isinstance(side, ast.JoinedStr) or _is_text(side) for side in (node.left, node.right)
    )
    if other is not None and not is_text:
        yield changed(node, op=other())


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield changed(node, value=not node.value)
    elif isinstance(node.value, int | float):
        yield changed(node, value=node.value + 1)


def _condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[ast.AST]:
    """Negate a condition, unless negating its only comparison has the same effect."""
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):
        turned = ast.UnaryOp(op=ast.Not(), operand=node.test)
        yield changed(node, test=ast.copy_location(turned, node.test))


def _returned(node: ast.Return) -> Iterator[ast.AST]:
    nothing = ast.Constant(value=None)
    if node.value is not None and not isinstance(node.value, ast.Constant):
        yield changed(node, value=ast.copy_location(nothing, node.value))


def _opposite(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in OPPOSITES:
        yield changed(node, func=changed(node.func, id=OPPOSITES[node.func.id]))


def _argument(node: ast.Call) -> Iterator[ast.AST]:
    """Drop a conversion: ``canonical(name)`` becomes ``name``."""
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    makes_a_thing = name[:1].isupper()
    if len(node.args) != 1 or node.keywords or makes_a_thing or name in CONVERSIONS:
        return
    if not isinstance(node.args[0], ast.Starred | ast.GeneratorExp | ast.Constant):
        yield node.args[0]


def _matters(node: ast.stmt) -> bool:
    """Whether deleting a statement may have an effect; docstrings have none."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom)
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return True


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


OPERATORS: list[tuple[type[ast.AST] | tuple[type[ast.AST], ...], Callable[..., Iterator[ast.AST]]]]
OPERATORS = [
    (ast.Compare, _comparison),
    (ast.BoolOp, _and_or),
    (ast.UnaryOp, _not),
    ((ast.BinOp, ast.AugAssign), _arithmetic),
    (ast.Constant, _constant),
    ((ast.If, ast.While, ast.IfExp), _condition),
    (ast.Return, _returned),
    (ast.Call, _opposite),
    (ast.Call, _argument),
]
