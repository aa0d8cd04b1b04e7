"""Regular expressions of RE2, in time that is linear in the length of the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import Taken
from delegraph_flex.numpy_executor.operators.strings import each
from delegraph_flex.numpy_executor.registry import operator

Strings = NDArray[np.object_]


def _re2() -> Any:
    """Return the module ``re2``, which has no wheels for the newest versions of Python.

    Raises:
        Unsupported: the module is not installed.
    """
    try:
        import re2
    except ImportError as error:
        reason = "google-re2 is not installed: pip install google-re2"
        raise Unsupported(reason, "executor") from error
    return re2


@lru_cache(maxsize=64)
def _compiled(pattern: bytes | str) -> Any:
    re2 = _re2()
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"invalid pattern {pattern!r}: {reason}") from error


def _constant(node: FlexNode) -> Any:
    """Return the compiled pattern of the attribute; an invalid pattern is an error in prepare."""
    try:
        return _compiled(node.bytes("pattern"))
    except ValueError as error:
        raise Unsupported(str(error)) from error


def _replacement(rewrite: bytes, groups: int) -> Callable[[Any], Any]:
    """Return the function that computes RE2's replacement *rewrite* of a match.

    Group 0 is the whole match; the pattern has *groups* other groups.

    Raises:
        ValueError: the rewrite names a group that the pattern does not have.
    """
    parts: list[bytes | int] = []
    at = 0
    while at < len(rewrite):
        following = rewrite[at + 1 : at + 2]
        if rewrite[at : at + 1] != b"\\":
            parts.append(rewrite[at : at + 1])
            at += 1
            continue
        if not following.isdigit() and following != b"\\":
            raise ValueError(f"invalid rewrite {rewrite!r}: a backslash before {following!r}")
        parts.append(int(following) if following.isdigit() else following)
        at += 2
    if max((part for part in parts if isinstance(part, int)), default=0) > groups:
        raise ValueError(f"invalid rewrite {rewrite!r}: the pattern has {groups} groups")

    taken = Taken("replaced text")

    def replace(match: Any) -> Any:
        found = [
            part if isinstance(part, bytes) else _encoded(match.group(part) or b"")
            for part in parts
        ]
        taken.add(sum(map(len, found)))
        return b"".join(found).decode("utf-8", "surrogateescape")

    return replace


def _encoded(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def _replaced(x: Strings, pattern: Any, rewrite: bytes, globally: bool) -> NDArray[Any]:
    """Return *x* with matches of *pattern* replaced by *rewrite*: the first, or all if *globally*.

    Valid UTF-8 is matched by characters, not bytes.
    """
    replacement, count = _replacement(rewrite, pattern.groups), 0 if globally else 1
    try:
        of_text = _compiled(pattern.pattern.decode())
    except UnicodeDecodeError:
        of_text = None

    def one(value: bytes) -> bytes:
        try:
            text = value.decode() if of_text is not None else None
        except UnicodeDecodeError:
            text = None
        if text is not None:
            return _encoded(of_text.sub(replacement, text, count))
        return bytes(pattern.sub(lambda m: _encoded(replacement(m)), value, count))

    return each(one)(x)


@operator("RegexReplace")
def replace(node: FlexNode) -> Step:
    r"""Function that replaces matches of a pattern; ``\1`` in the replacement is a group."""
    globally = node.bool("replace_global", True)
    _re2()

    def run(x: Strings, pattern: NDArray[Any], rewrite: NDArray[Any]) -> NDArray[Any]:
        return _replaced(x, _compiled(pattern.item()), rewrite.item(), globally)

    return run


@operator("StaticRegexReplace")
def replace_constant(node: FlexNode) -> Step:
    """Return a function that replaces matches; pattern and replacement are attributes."""
    pattern, rewrite = _constant(node), node.bytes("rewrite")
    globally = node.bool("replace_global", True)
    return lambda x: _replaced(x, pattern, rewrite, globally)


def _matched(pattern: Any) -> Step:
    return each(lambda value: pattern.fullmatch(value) is not None, np.bool_)


@operator("RegexFullMatch")
def full_match(node: FlexNode) -> Step:
    """Return a function that computes whether a whole string matches a pattern."""
    _re2()
    return lambda x, pattern: _matched(_compiled(pattern.item()))(x)


@operator("StaticRegexFullMatch")
def full_match_constant(node: FlexNode) -> Step:
    """Return a function that tests for a match of the whole string; the pattern is an attribute."""
    return _matched(_constant(node))
