"""Side effects of TensorFlow operators, for which the delegate rejects some operators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from delegraph import Rejection
from delegraph_flex.data_types import HANDLES
from delegraph_flex.flex_node import FlexNode


@dataclass(frozen=True, slots=True)
class SideEffect:
    """An effect of operators beyond their outputs, such as writing files.

    Attributes:
        name: name of the effect, one word, such as ``"files"``.
        does: activity of the operators, as the end of a sentence, such as ``"reads or writes
            files"``.
        is_refused: whether operators with this effect are rejected unless the user names them.
        when: an attribute, and a pattern for its text; operators are rejected only if the pattern
            matches.
    """

    name: str
    does: str
    is_refused: bool
    when: tuple[str, str] | None = None

    def refuses(self, node: FlexNode) -> bool:
        """Whether this effect of *node* needs the user's permission."""
        if self.when is None or not self.is_refused:
            return self.is_refused
        attribute, pattern = self.when
        return fnmatchcase(node.bytes(attribute, b"").decode("latin-1"), pattern)


@cache
def side_effects() -> Mapping[str, SideEffect]:
    """Return a mapping from each known operator's TensorFlow name to its side effect.

    Each paragraph of ``side_effects.txt`` has an effect in its first line, and the operators with
    this effect in the other lines.
    """
    found: dict[str, SideEffect] = {}
    text = files("delegraph_flex").joinpath("side_effects.txt").read_text(encoding="utf-8")
    for paragraph in text.split("\n\n")[1:]:
        heading, operators = paragraph.split("\n", 1)
        found |= dict.fromkeys(operators.split(), _read(heading))
    return MappingProxyType(found)


def _read(heading: str) -> SideEffect:
    """Return the side effect in *heading*, such as ``refused files: reads or writes files``."""
    verdict, does = heading.split(": ", 1)
    verdict, name, *when = verdict.replace("=", " ").split()
    return SideEffect(name, does, verdict == "refused", (when[1], when[2]) if when else None)


def reject_by_side_effect(node: FlexNode, allowed_too: Collection[str]) -> Rejection | None:
    """Return the rejection of an operator for its side effect; None if it may run.

    A model is an untrusted file, so operators with effects outside of the interpreter are rejected
    unless the user names them.

    Args:
        node: the operator.
        allowed_too: names of the operators that the user allows, whatever their effects.

    Raises:
        Unsupported: the attribute that the side effect depends on does not have the right type.
    """
    op, effect = node.op, side_effects().get(node.op)
    if op in allowed_too:
        return None
    if effect is None:
        return Rejection(
            "unknown",
            f"the side effects of {op} are unknown, it is none of TensorFlow 2.21's operators; "
            f"allow={op} lets it run",
        )
    if effect.refuses(node):
        does = effect.does
    elif effect.name == "parsers" and not HANDLES.isdisjoint(node.output_types):
        does = "makes a handle of bytes, which may reach what other models in the process hold"
    else:
        return None
    return Rejection("unsafe", f"{op} {does}, and runs only when it is named: allow={op}")
