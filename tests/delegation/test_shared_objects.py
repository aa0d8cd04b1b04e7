from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest

from delegraph import DelegateContext, DelegateParams, Interpreter
from delegraph.delegation.shared_objects import shared_object
from delegraph.native import LiteRtInterpreter
from support.by_name import ByName, ByNameKernel, sines

HOSTS = pytest.mark.parametrize("host", [Interpreter, LiteRtInterpreter])


class Engine:
    """What a delegate would not like to make twice."""


class Sharing(ByName):
    def __init__(self) -> None:
        super().__init__("SIN", kernel=SharingKernel)
        self.engines: list[ref[Engine]] = []


class SharingKernel(ByNameKernel):
    delegate: Sharing

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        super().init(context, params)
        self.delegate.engines.append(ref(context.shared(("sharing", "engine"), Engine)))


@HOSTS
def test_interpreters_share_it_until_the_last_one_closes(host: Callable[..., Any]) -> None:
    delegate = Sharing()
    first, second = (host(model_content=sines(), delegates=[delegate]) for _ in range(2))
    first.allocate_tensors()
    second.allocate_tensors()
    (engine,) = {found() for found in delegate.engines}
    assert isinstance(engine, Engine)
    del engine
    delegate.params.clear()  # which hold the contexts
    first.close()
    gc.collect()
    assert delegate.engines[0]() is not None
    second.close()
    gc.collect()
    assert delegate.engines[0]() is None


def test_other_keys_have_other_objects() -> None:
    kept: dict[Any, Any] = {}
    one = shared_object(kept, ("a", 1), Engine)
    assert shared_object(kept, ("a", 2), Engine) is not one
    assert shared_object({}, ("a", 1), Engine) is one


def test_what_fails_to_be_made_is_tried_again() -> None:
    kept: dict[Any, Any] = {}

    def fail() -> Engine:
        raise OSError("no device")

    with pytest.raises(OSError, match="no device"):
        shared_object(kept, "failing", fail)
    assert isinstance(shared_object(kept, "failing", Engine), Engine)


def test_threads_that_ask_at_once_get_one() -> None:
    made: list[int] = []
    barrier = threading.Barrier(8)
    found: list[Any] = []
    kept: dict[Any, Any] = {}

    def make() -> Engine:
        made.append(1)
        return Engine()

    def ask() -> None:
        barrier.wait()
        found.append(shared_object(kept, "asked at once", make))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(set(map(id, found)))) == (1, 1)
