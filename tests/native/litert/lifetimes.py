"""Ways in which interpreters and delegates end, each a program: ``python lifetimes.py NAME``.

A wrong order crashes, so every one is run in a process of its own. ``leaks`` prints what lives of
a delegate leave behind: Python blocks, delegates, kernels, bytes of C memory.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from delegraph import DelegateFlags
from delegraph.errors import DelegateError
from delegraph.graph.loader import parse_model
from delegraph.native import LiteRtInterpreter, litert_delegate
from delegraph.native.litert import thunks
from delegraph.native.litert.installed_runtimes import interpreter_module
from support.by_name import ByName, X, sines

OFFICIAL = interpreter_module()
CONTENT = sines()
MODEL = parse_model(CONTENT)


def interpreter(delegates: list[Any]) -> Any:
    made = OFFICIAL.Interpreter(
        model_content=CONTENT,
        experimental_delegates=delegates,
        experimental_op_resolver_type=OFFICIAL.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    made.allocate_tensors()
    made.invoke()
    return made


def delegate(flags: DelegateFlags = DelegateFlags.NONE) -> Any:
    return litert_delegate(ByName("SIN", "ADD", flags=flags), model=MODEL)


def expect_nothing_left() -> None:
    for _ in range(3):  # an interpreter in a circle has a finalizer, and lets go in the next round
        gc.collect()
    assert thunks.living() == (0, 0), thunks.living()


def interpreter_first() -> None:
    one = delegate()
    made = interpreter([one])
    del made
    gc.collect()
    assert thunks.living() == (1, 0), thunks.living()
    del one
    expect_nothing_left()


def delegate_first() -> None:
    delegates = [delegate()]
    made = interpreter(delegates)
    delegates.clear()
    gc.collect()
    made.invoke()
    del made
    expect_nothing_left()


def view_outlives_both() -> None:
    one = delegate()
    made = interpreter([one])
    view = made.tensor(made.get_output_details()[0]["index"])()
    del made, one
    gc.collect()
    assert thunks.living()[1] == 2, thunks.living()
    assert view.shape == (4,)
    del view
    expect_nothing_left()


def shared_by_three() -> None:
    one = delegate()
    made = [interpreter([one]) for _ in range(3)]
    assert thunks.living() == (1, 6), thunks.living()
    for each in made:
        each.invoke()
    del made, each, one
    expect_nothing_left()


def applied_twice() -> None:
    one = delegate()
    made = interpreter([one, one])
    made.invoke()
    del made, one
    expect_nothing_left()


def in_a_circle() -> None:
    class Holder:
        pass

    holder: Any = Holder()
    holder.one = delegate()
    holder.made = interpreter([holder.one])
    holder.self = holder
    del holder
    expect_nothing_left()


def alive_at_exit() -> None:
    sys.kept = interpreter([delegate()])  # type: ignore[attr-defined]  # on purpose


def alive_at_exit_with_a_view() -> None:
    made = interpreter([delegate()])
    sys.kept = made, made.tensor(0)()  # type: ignore[attr-defined]  # on purpose


def stale() -> None:
    delegates = [litert_delegate(ByName("TANH"), model=MODEL)]
    made = interpreter(delegates)
    delegates.clear()
    gc.collect()
    made.resize_tensor_input(0, (9,))
    text = "nothing"
    try:
        made.allocate_tensors()
    except RuntimeError as error:
        text = str(error)
    assert "closed or collected" in text, text


def a_thousand() -> None:
    for _ in range(1000):
        interpreter([delegate()])
    expect_nothing_left()


# -- leaks -----------------------------------------------------------------------------------------


_MALLINFO = ("a", "b", "c", "d", "hblkhd", "f", "g", "uordblks", "i", "j")


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO]


def c_bytes() -> int:
    """Return the bytes that are allocated by malloc; 0 where the C library does not tell."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0
    library.mallinfo2.restype = _MallInfo
    found = library.mallinfo2()
    return int(found.uordblks + found.hblkhd)


def life() -> None:
    interpreter([delegate()])


def wrapped_life() -> None:
    with LiteRtInterpreter(model_content=CONTENT, delegates=[ByName("SIN", "ADD")]) as made:
        made.allocate_tensors()
        made.set_tensor(0, X)
        made.invoke()


KEPT: list[Any] = []


def leaking_life() -> None:
    life()
    KEPT.append([object() for _ in range(8)])  # and the list itself: ten blocks


def failing_life() -> None:
    class Fails(ByName):
        def create_delegate_kernel_interface(self) -> Any:
            raise ValueError("on purpose")

    with suppress(DelegateError):
        LiteRtInterpreter(model_content=CONTENT, delegates=[Fails("SIN")])


def growth(one: Callable[[], None], times: int) -> tuple[float, float]:
    """Return Python blocks and C bytes that stay behind each time."""
    for _ in range(2 * times):  # until caches are warm
        one()
    gc.collect()
    blocks, size = sys.getallocatedblocks(), c_bytes()
    for _ in range(times):
        one()
    gc.collect()
    return (sys.getallocatedblocks() - blocks) / times, (c_bytes() - size) / times


def leaks() -> None:
    for one in (life, wrapped_life, failing_life, leaking_life):
        blocks, size = growth(one, 250)
        print(f"{one.__name__} {blocks:.3f} {size:.1f}")
    print("living", *thunks.living())


def invoke_leaks() -> None:
    made = LiteRtInterpreter(model_content=CONTENT, delegates=[ByName("SIN", "ADD")])
    made.allocate_tensors()
    np.testing.assert_equal(made.placement.partitions != (), True)
    calls = made._delegates[0].delegate.simple.calls

    def invoke() -> None:
        made.invoke()
        calls.clear()

    blocks, size = growth(invoke, 3000)
    print(f"invoke {blocks:.3f} {size:.1f}")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("done")
