"""A lock for ``with`` statements that an interrupt may end."""

from __future__ import annotations

import sys
from _thread import RLock  # the class that threading uses, whose import is slow


class Lock(RLock):  # type: ignore[misc] # final for typeshed, not for Python
    """Reentrant lock that is never held after a ``with`` statement that was interrupted.

    A ``with`` statement of Python 3.14 handles signals once more between its entry and its block.
    An exception at this point, such as KeyboardInterrupt, would leave other locks held for ever.
    Source: https://github.com/python/cpython/issues/148874, mended in Python 3.15.
    """

    __slots__ = ()

    if sys.version_info[:2] == (3, 14):

        def __enter__(self) -> bool:
            """Acquire the lock; an interrupt meanwhile releases it again."""
            try:
                return self.acquire()
            except BaseException:
                if self._is_owned():
                    self.release()
                raise
