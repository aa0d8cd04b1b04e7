"""Finds a plan of at most a given number of bytes, or proves that no such plan exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.memory.packing import Packing

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FAR = np.iinfo(np.int64).max // 4


class OutOfSteps(Exception):
    """Raised when the search reaches its step limit without an answer."""


class BranchAndBound:
    """A search through all plans in which no tensor can be moved to a lower offset.

    Any plan can be changed to such a plan of the same size. In the order of offsets, each tensor is
    at 0 or directly above an earlier tensor. So the search places tensors in this order, each at
    the lowest offset above the tensors placed before.

    Args:
        packing: sizes and lifetimes of the tensors.
        steps: maximal number of placements to try, in all searches together.

    Source:
        The ideas are those of M. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
        Hardware-Accelerated Machine Learning", ASPLOS 2023; the code is ours.
    """

    def __init__(self, packing: Packing, steps: int) -> None:
        self._steps = steps
        self._unit = packing.alignment
        self._sizes, self._units = packing.sizes, packing.units
        begins, ends = packing.begins, packing.ends
        areas = (ends - begins) * self._units
        self._rank = np.argsort(np.argsort(-areas, kind="stable"))
        self._overlaps = (begins[:, None] < ends) & (begins < ends[:, None])
        np.fill_diagonal(self._overlaps, False)
        tasks = np.arange(len(packing.tasks))[:, None]
        self._covers = (begins <= tasks) & (tasks < ends)

    def next_total(self, total: int) -> int:
        """Return the smallest number of bytes above *total* that a plan can take.

        Tensors that cannot be moved down are at multiples of the greatest common divisor of all
        sizes.
        """
        step = self._unit * int(np.gcd.reduce(self._units))
        return total + 1 + int(((self._sizes - total - 1) % step).min())

    def offsets_within(self, total: int) -> list[int] | None:
        """Return offsets, in units of the alignment, of a plan of at most *total* bytes.

        The result is None if there is no plan of this size.

        Raises:
            OutOfSteps: the search would take too long.
        """
        self._highest = (total - self._sizes) // self._unit
        if (self._highest < 0).any():
            return None
        self._roofs = np.where(self._covers, self._highest + self._units, 0)
        self._offsets = np.zeros(len(self._units), np.int64)
        waiting = self._units > 0
        found = self._search(waiting, np.zeros(len(self._units), np.int64), 0, -1)
        return self._offsets.tolist() if found else None

    def _search(
        self, waiting: NDArray[np.bool_], lowest: NDArray[np.int64], level: int, last: int
    ) -> bool:
        """Place the *waiting* tensors at *level* or above; return whether all of them fit.

        Args:
            waiting: whether each tensor must still be placed, ``[n], bool``.
            lowest: lowest possible offset of each tensor above the placed ones, ``[n], int64``.
            level: offset of the last placed tensor.
            last: rank of the last placed tensor; tensors at the same offset must have higher ranks,
                since their order does not matter.
        """
        if not waiting.any():
            return True
        candidates = self._candidates(waiting, lowest, level, last)
        if candidates is None:
            return False
        for tensor in candidates:
            if self._steps == 0:
                raise OutOfSteps
            self._steps -= 1
            offset = lowest[tensor]
            self._offsets[tensor] = offset
            raised = np.where(
                self._overlaps[tensor], np.maximum(lowest, offset + self._units[tensor]), lowest
            )
            remaining = waiting.copy()
            remaining[tensor] = False
            if self._search(remaining, raised, offset, self._rank[tensor]):
                return True
        return False

    def _candidates(
        self, waiting: NDArray[np.bool_], lowest: NDArray[np.int64], level: int, last: int
    ) -> list[int] | None:
        """Return the tensors to try next; None if the *waiting* tensors cannot all fit.

        The tensor placed last is at the offset *level* and has the rank *last*. *lowest* has the
        lowest possible offset of each tensor.
        """
        stuck = waiting & (lowest < level)  # it can only rest on tensors that are not placed yet
        reachable = np.where(stuck, level, lowest)
        supports = np.where(self._overlaps[stuck] & waiting, self._units, _FAR)
        lifted = reachable.copy()
        lifted[stuck] += supports.min(axis=1, initial=_FAR)
        if (lifted > self._highest)[waiting].any():
            return None
        crowds = self._covers & waiting
        floors = np.where(crowds, lifted, _FAR).min(axis=1, initial=_FAR)
        roofs = np.where(crowds, self._roofs, _FAR).max(axis=1, initial=0)
        if (floors + crowds @ self._units > roofs)[crowds.any(axis=1)].any():
            return None
        free = waiting & ~stuck & ((lowest > level) | (self._rank > last))
        # A tensor that would start above the end of another placeable tensor can wait for it.
        ends = np.where(waiting, reachable + self._units, _FAR)
        free &= lowest < ends.min()
        tensors = np.flatnonzero(free)
        order = np.lexsort((self._rank[tensors], lowest[tensors]))
        found: list[int] = tensors[order].tolist()
        return found
