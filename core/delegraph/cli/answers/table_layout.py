"""Computes column widths of a table, so that cells wrap between words, never inside them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

GAP = 2
"""Blanks between two columns."""

SMALL_GAP = 1
"""Blanks between two columns if :data:`GAP` would break words."""

LONGEST_NAME = 60
"""Largest number of characters of a name in tables; JSON has the whole name."""

_NO_BREAK = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGT]?B|[mnu]?s|%|dB|[kMGT]?MACs?)(?!\w))")
_BEFORE_COUNT = re.compile(r"(?<=[A-Za-z0-9]) (?=x\d+\b)")
_SHAPE = re.compile(r"\[-?\d+(?:, -?\d+){1,3}\]")

_PLACE = re.compile(r":\d+$")
_TAIL_SHARE = 5
"""Divisor of a name's limit: a fifth of the shown characters may move from its end to its start."""


_SHORTEST_NAME = 12
_USUAL_NAME = 24
_SHORTEST_WORD = 16
_COMFORTABLE = 18
_FEW_NAMES = 2
_SHORT_FOLDER = 6
_SHORTEST_SENTENCE = 24


@dataclass(frozen=True)
class Column:
    """A column of a table with its heading and cells.

    Attributes:
        heading: the heading.
        cells: the texts below it.
        is_name: whether the cells are names, which are shortened before other columns wrap.
        is_number: whether the cells are numbers, which are never shortened nor wrapped.
        is_sentence: whether the cells are sentences, which wrap at 24 characters or more.
    """

    heading: str
    cells: tuple[str, ...]
    is_name: bool = False
    is_number: bool = False
    is_sentence: bool = False

    @property
    def widest(self) -> int:
        """Number of characters of the longest cell; for names, at most the longest shown."""
        cells = max(map(len, self.cells), default=0)
        return max(len(self.heading), min(cells, LONGEST_NAME) if self.is_name else cells)

    @property
    def narrowest(self) -> int:
        """Smallest width, in characters, at which no word of the column is broken.

        For names, it is a width that is enough for most names; for sentences, at least 24
        characters.
        """
        words = joined_units(self.heading).split(" ")
        for text in self.cells:
            words += [text] if self.is_number else joined_units(text).split(" ")
        longest = max(map(len, words), default=0)
        if self.is_sentence:
            return max(longest, min(self.widest, _SHORTEST_SENTENCE))
        return min(self.widest, _USUAL_NAME) if self.is_name else longest

    @property
    def broken(self) -> int:
        """Smallest width, in characters, if long names and words are shortened."""
        if self.is_number:
            return self.narrowest
        if self.is_sentence:
            return min(self.narrowest, _SHORTEST_SENTENCE)
        return min(self.narrowest, _SHORTEST_NAME if self.is_name else _SHORTEST_WORD)

    def used(self, width: int) -> int:
        """Number of characters of the longest line when the cells are wrapped at *width*."""
        if self.is_name or self.widest <= width:
            return width
        lines = [line for text in (self.heading, *self.cells) for line in wrapped(text, width)]
        return max(map(len, lines))

    def shortened_to(self, width: int) -> Column:
        """Return the column with names or words that exceed *width* shortened in the middle."""
        if self.is_name:
            cells = shortened_names(self.cells, width)
        else:
            cells = tuple(self._fitted(text, width) for text in self.cells)
        return replace(self, cells=cells)

    def _fitted(self, text: str, width: int) -> str:
        if self.is_number or all(len(word) <= width for word in text.split()):
            return text
        return " ".join(shortened(word, max(width, _SHORTEST_WORD)) for word in text.split())


def wrapped(text: str, width: int, later: str = "") -> list[str]:
    """Return a sentence in lines of a width; a number and its unit stay in one line.

    A word that is longer than the width begins a line; a path is broken after a ``/``. *later* are
    the blanks before each line but the first.

    >>> wrapped("it takes 1.5 MB", 12)
    ['it takes', '1.5 MB']
    >>> wrapped("/models/speech/small.tflite", 20)
    ['/models/speech/', 'small.tflite']
    """
    if len(text) <= width:
        return [text]
    lines = wrap(
        joined_units(text),
        width,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    whole = (line.replace(_NO_BREAK, " ") for line in lines)
    return [part for line in whole for part in _broken(line, width, later)]


def _broken(line: str, width: int, later: str) -> Iterator[str]:
    """Yield *line* in parts of a width that end with a ``/``; a longer part stays whole."""
    while len(line) > width and (end := line.rfind("/", len(later) + 1, width) + 1):
        yield line[:end]
        line = later + line[end:]
    yield line


def joined_units(text: str) -> str:
    """Return the text with no-break blanks before units and counts, such as ``x14``.

    Blanks in shapes up to rank 4 become no-break blanks as well.
    """
    whole = _SHAPE.sub(lambda shape: shape[0].replace(" ", _NO_BREAK), text)
    return _BEFORE_COUNT.sub(_NO_BREAK, _BEFORE_UNIT.sub(_NO_BREAK, whole))


@dataclass(frozen=True)
class Layout:
    """The columns that are printed, with their widths and the blanks between them."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    gap: int

    @property
    def headings(self) -> list[str]:
        """Headings of the columns."""
        return [column.heading for column in self.columns]


def kept_columns(
    columns: Sequence[Column], width: int, optional: Sequence[Sequence[str]]
) -> list[Column]:
    """Return the columns for which a line has room, without some of the *optional* ones.

    *width* is in characters. *optional* has groups of headings as for :func:`fitted`.
    """
    kept = list(columns)
    for headings in optional:
        if _total((max(c.narrowest, min(c.widest, _COMFORTABLE)) for c in kept), GAP) <= width:
            break
        kept = [column for column in kept if column.heading not in headings]
    return kept


def fitted(
    columns: Sequence[Column], width: int, optional: Sequence[Sequence[str]] = ()
) -> Layout | None:
    """Return the layout of a table; None if a line cannot hold all columns.

    Args:
        columns: columns of the table.
        width: number of characters of a line.
        optional: groups of headings whose columns may be omitted, the first group first. They are
            omitted until each column has room for its words, and for cells of up to 18 characters.
    """
    kept = kept_columns(columns, width, optional)
    for gap, breaks_words in ((GAP, False), (SMALL_GAP, False), (SMALL_GAP, True)):
        widths = _widths(kept, width, gap, breaks_words=breaks_words)
        if _total(widths, gap) <= width:
            fitting = (column.shortened_to(w) for column, w in zip(kept, widths, strict=True))
            return Layout(tuple(fitting), tuple(widths), gap)
    return None


def _widths(columns: Sequence[Column], width: int, gap: int, *, breaks_words: bool) -> list[int]:
    """Return the width of each column, in characters, so that a line of *width* holds them all.

    The widths are those of the longest cells if these fit. Otherwise names are shortened, then
    cells wrap, and finally long words are broken, if *breaks_words*.
    """
    widest = [min(column.widest, width) for column in columns]
    least = [column.narrowest for column in columns]
    cut = [n if c.is_name else w for c, n, w in zip(columns, least, widest, strict=True)]
    widest = _reduced(_reduced(widest, cut, width, gap), least, width, gap)
    if not breaks_words:
        return _tightened(columns, widest, width, gap)
    shortest = [c.broken if c.is_name else w for c, w in zip(columns, widest, strict=True)]
    widest = _reduced(widest, shortest, width, gap)
    return _reduced(widest, [column.broken for column in columns], width, gap)


def _tightened(columns: Sequence[Column], widths: Sequence[int], width: int, gap: int) -> list[int]:
    """Return column widths reduced to the longest line of each column's wrapped cells.

    The saved characters go to columns whose cells wrap.
    """
    found = [column.used(w) for column, w in zip(columns, widths, strict=True)]
    for i in sorted(range(len(found)), key=lambda i: columns[i].widest - found[i]):
        room = max(0, width - _total(found, gap))
        found[i] += min(room, columns[i].widest - found[i])
    return found


def _reduced(widths: Sequence[int], least: Sequence[int], width: int, gap: int) -> list[int]:
    """Return widths of which the largest are reduced until all fit, but not below *least*.

    >>> _reduced([5, 20, 9], [5, 4, 9], 30, 2), _reduced([5, 20], [5, 18], 9, 2)
    ([5, 12, 9], [5, 18])
    """
    found = list(widths)
    while _total(found, gap) > width:
        free = [i for i, w in enumerate(found) if w > least[i]]
        if not free:
            break
        largest = max(free, key=found.__getitem__)
        found[largest] -= 1
    return found


def _total(widths: Iterable[int], gap: int) -> int:
    """Return the number of characters of a line: all *widths*, with a *gap* between columns."""
    return sum(width + gap for width in widths) - gap


def shortened(name: str, limit: int = LONGEST_NAME) -> str:
    """Return a name, with its middle replaced by ``...`` if it exceeds *limit* characters.

    >>> shortened("model/block_1/conv/BiasAdd;model/block_1/conv/Relu", 24)
    'model/block.../conv/Relu'
    """
    if len(name) <= limit:
        return name
    return _cut(name, limit, 0, _half(limit - 3))


def shortened_names(names: Sequence[str], limit: int) -> tuple[str, ...]:
    """Return names of at most *limit* characters; long ones lose parts in which few differ.

    >>> shortened_names(["block_1/project/Conv2D", "block_2/project/Conv2D"], 18)
    ('block_1/.../Conv2D', 'block_2/.../Conv2D')
    """
    found = [shortened(name, limit) for name in names]
    alike: dict[str, set[str]] = {}
    for name, shown in zip(names, found, strict=True):
        if len(name) > limit:
            alike.setdefault(_PLACE.sub("", shown), set()).add(name)
    cuts = {
        shown: _best_cut(sorted(group), limit) for shown, group in alike.items() if len(group) > 1
    }
    return tuple(
        shown if (cut := cuts.get(_PLACE.sub("", shown))) is None else _cut(name, limit, *cut)
        for name, shown in zip(names, found, strict=True)
    )


def _best_cut(names: Sequence[str], limit: int) -> tuple[int, int]:
    """Return the cut after which most of some similar names differ, as arguments of :func:`_cut`.

    A node's number at the end of a name, such as ``:7``, does not count as a difference.
    """
    middle = _half(limit - 3)
    shortest = min(map(len, names))
    same = len(os.path.commonprefix(names))  # noqa: RUF071 - names of tensors are no paths
    heads = [(0, head) for head in range(middle, middle + max(1, limit // _TAIL_SHARE))]
    room = _half(limit - 6)
    last = min(same, shortest - limit + 6)  # the part ends before the end that is kept
    parts = [(start, room) for start in range(max(1, same - room + 1), last + 1)]
    return max(
        [*heads, *parts],
        key=lambda cut: len({_PLACE.sub("", _cut(name, limit, *cut)) for name in names}),
    )


def _half(room: int) -> int:
    return room - room // 2


def _cut(name: str, limit: int, start: int, count: int) -> str:
    """Return *count* characters of a name from *start*, and its end: in all *limit* characters.

    A name that is not longer than the limit is whole. A list of names keeps its bracket.
    """
    if len(name) <= limit:
        return name
    begin = "..." if start else ""
    if start and name.startswith("["):
        begin = f"[{begin}"
    end = limit - len(begin) - count - 3
    return f"{begin}{name[start : start + count]}...{name[len(name) - end :]}"


def common_folder(names: Sequence[str]) -> str:
    """Return the folders that begin all names with folders; empty if they are short.

    >>> common_folder(["input", "network/block_1/add", "network/block_1/mul", "network/block_1/x"])
    'network/block_1/'
    """
    long = [name for name in names if "/" in name]
    begin = os.path.commonprefix(long)  # noqa: RUF071 - names of tensors are no paths
    folder = begin.rpartition("/")[0] + "/"
    return folder if len(long) > _FEW_NAMES and len(folder) > _SHORT_FOLDER else ""


def dropped_folder(columns: Sequence[Column], layout: Layout) -> str:
    """Return the common folder of names that the layout shortens; empty if there is none."""
    widths = dict(zip(layout.headings, layout.widths, strict=True))
    for column in columns:
        if column.is_name and max(map(len, column.cells)) > widths.get(
            column.heading, LONGEST_NAME
        ):
            return common_folder(column.cells)
    return ""


def without_folder(folder: str, column: Column) -> Column:
    """Return a column whose names have ``.../`` for their common folder.

    The bracket at the beginning of a list of names stays.
    """
    if not column.is_name:
        return column
    kept = "[" if folder.startswith("[") else ""
    cells = (
        f"{kept}.../{text[len(folder) :]}" if text.startswith(folder) else text
        for text in column.cells
    )
    return replace(column, cells=tuple(cells))


def shortened_path(path: str, limit: int) -> str:
    """Return a path, its folder with ``...`` in the middle if it exceeds *limit* characters.

    >>> shortened_path("/home/me/models/quantized/mobilenet.tflite", 30)
    '/home...tized/mobilenet.tflite'
    """
    folder, slash, file = path.rpartition("/")
    room = limit - len(slash + file)
    if len(path) <= limit or room < 4:
        return shortened(path, limit)
    return f"{shortened(folder, room)}{slash}{file}"
