from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from delegraph.errors import StateError
from delegraph.runtime.tensor_access import MemoryViews


def test_a_view_is_alive_until_its_last_slice_is_gone() -> None:
    views, data = MemoryViews(), np.zeros(4)
    views.require_none()
    first, second = views.export(data), views.export(data)
    part = first[1:]
    part[0] = 7
    assert data.tolist() == [0, 7, 0, 0]
    del first, second
    with pytest.raises(StateError, match="at least 1 reference to internal data"):
        views.require_none()
    del part
    views.require_none()


def test_a_view_keeps_its_memory() -> None:
    data = np.zeros(4)
    memory = weakref.ref(data)
    view = MemoryViews().export(data)
    del data
    gc.collect()
    assert memory() is not None
    assert view.tolist() == [0, 0, 0, 0]
