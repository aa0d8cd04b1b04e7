"""A context for parts of kernels that only need working memory."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


class Memory:
    """Gives working memory filled with nonsense, as a kernel finds it."""

    def scratch(self, shape: Any, dtype: DTypeLike) -> Any:
        data = np.empty(shape, dtype)
        data.view(np.uint8)[...] = 0xA5
        return SimpleNamespace(data=data)
