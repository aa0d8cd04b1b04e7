"""What is done with compiled delegates in Delegraph alone; their names start with ``mine_``."""

from __future__ import annotations

import ctypes
import gc
import statistics
from typing import Any

import numpy as np
from external_host import (
    ADD_THEN_LOGISTIC,
    ISLANDS,
    ONE_ADD,
    SHOUT,
    Host,
    X,
    again,
    collect,
    run,
    scenario,
    words,
)

from delegraph import FailurePolicy, PlacementPolicy, PlacementRule


@scenario
def mine_applied_later_and_taken_off(host: Host) -> Any:
    interpreter = host.interpreter(ISLANDS)
    results = [run(interpreter, X)]
    interpreter.modify_graph_with_delegate(host.load("adds", {"factor": 3}))
    results += [again(interpreter, X), len(interpreter.placement.partitions)]
    interpreter.remove_all_delegates()
    results.append(again(interpreter, X))
    gc.collect()
    library = host.c_library("adds")
    return [*results, library.num_live_delegates(), library.num_live_kernels()]


@scenario
def mine_by_text(host: Host) -> Any:
    results = []
    for delegates in ([f"{host.path('adds')}:factor=3"], {host.path("adds"): {"factor": 3}}):
        interpreter = host.Interpreter(model_content=ONE_ADD, delegates=delegates)
        results.append(run(interpreter, X, X))
    return results


@scenario
def mine_falls_back(host: Host) -> Any:
    interpreter = host.Interpreter(
        model_content=ONE_ADD,
        delegates=[host.load("fails", {"at": "invoke", "after": 1})],
        failures=FailurePolicy(on_failure="fallback"),
    )
    results = [run(interpreter, X, X), again(interpreter, X + 1, X)]
    return [*results, [incident.error for incident in interpreter.incidents]]


@scenario
def mine_under_validation_and_shadow(host: Host) -> Any:
    interpreter = host.Interpreter(
        model_content=ONE_ADD,
        delegates=[host.load("adds", {"factor": 3})],
        failures=FailurePolicy(on_failure="shadow", shadow_share=1.0, validate=True),
    )
    return [run(interpreter, X, X), [i.is_quarantined for i in interpreter.incidents]]


@scenario
def mine_under_rules_measured_and_profiled(host: Host) -> Any:
    delegate = host.load("adds", {"factor": 3})
    barred = host.Interpreter(
        model_content=ISLANDS,
        delegates=[delegate],
        placement=PlacementPolicy(rules=[PlacementRule("exclude", delegate="libadds", nodes=0)]),
    )
    results = [[p.nodes for p in barred.placement.partitions]]
    measured = host.Interpreter(
        model_content=ISLANDS,
        delegates=[host.load("adds")],
        placement=PlacementPolicy(partitions="measured"),
    )
    results.append(run(measured, X))
    run(barred, X)
    with barred.profile() as profile:
        barred.invoke()
    return [*results, [event.name for event in profile.events]]


@scenario
def mine_failing_claim_leaves_the_graph(host: Host) -> Any:
    library = host.c_library("fails")
    interpreter = host.interpreter(ONE_ADD)
    before = library.num_live_kernels()
    said = words(
        lambda: interpreter.modify_graph_with_delegate(host.load("fails", {"at": "claim"}))
    )
    return [said, run(interpreter, X, X), library.num_live_kernels() - before]


@scenario
def mine_illegal_resize(host: Host) -> Any:
    interpreter = host.interpreter(ONE_ADD, host.load("resizes", {"how": "illegal"}))
    interpreter.allocate_tensors()
    return words(interpreter.invoke)


@scenario
def mine_damaged_strings(host: Host) -> Any:
    interpreter = host.interpreter(SHOUT, host.load("strings", {"how": "damaged"}))
    interpreter.allocate_tensors()
    index = interpreter.get_input_details()[0]["index"]
    interpreter.set_tensor(index, np.array([b"one", b"two", b"three"]))
    return words(interpreter.invoke)


@scenario
def mine_buffers_fail_and_are_freed(host: Host) -> Any:
    library = host.c_library("buffers")
    interpreter = host.interpreter(ADD_THEN_LOGISTIC, host.load("buffers"))
    run(interpreter, X, X)
    said = words(lambda: again(interpreter, X - 2000, X))
    before = library.num_frees()
    interpreter.close()
    return [said, library.num_frees() - before]


@scenario
def mine_in_circles(host: Host) -> Any:
    """An interpreter and its delegate that only the garbage collector can free."""
    library = host.c_library("adds")
    gc.collect()
    before = library.num_live_delegates(), library.num_live_kernels()
    for _ in range(3):
        delegate = host.load("adds")
        interpreter = host.interpreter(ISLANDS, delegate)
        run(interpreter, X)
        delegate.interpreter, interpreter.delegate = interpreter, delegate
        del delegate, interpreter
        gc.collect()
    return [library.num_live_delegates() - before[0], library.num_live_kernels() - before[1]]


@scenario
def mine_many_times(host: Host) -> Any:
    """Bytes of C memory that every interpreter leaves behind; then with a leak put in."""
    library = host.c_library("describes")
    library.bytes_in_use.restype = ctypes.c_size_t

    def use() -> None:
        interpreter = host.interpreter(ISLANDS, host.load("adds"))
        run(interpreter, X)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [1])
        interpreter.allocate_tensors()
        interpreter.close()

    def growth(leak: int) -> float:
        """Mean growth an interpreter, without the quarters that grew most and least.

        One of four leaves something for good on CPython 3.10, which gives each function a cache at
        its 1024th call.
        """
        sizes = []
        for _ in range(80):
            before = library.bytes_in_use()
            use()
            library.leak(leak)
            collect()
            sizes.append(library.bytes_in_use() - before)
        return statistics.fmean(sorted(sizes)[20:60])

    for _ in range(20):
        use()  # the first ones fill caches
    collect()
    gc.freeze()  # so that collections look at what is new
    found = [growth(0), growth(100)]
    gc.unfreeze()
    return found
