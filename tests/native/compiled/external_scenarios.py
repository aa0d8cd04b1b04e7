"""What is done with compiled delegates, in Delegraph and in stock LiteRT: a program of its own.

``python external_scenarios.py HOST FOLDER [NAME...]`` prints a line of JSON for each scenario: its
name and what came out. A crash ends it, so that whoever started it knows which one it was.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from external_host import (
    ADD_THEN_LOGISTIC,
    BROADCAST,
    ISLANDS,
    ONE_ADD,
    REPORTED,
    SCENARIOS,
    SHOUT,
    TWO_SUBGRAPHS,
    Host,
    X,
    again,
    collect,
    output,
    run,
    scenario,
    words,
)

from delegraph.schema.options import AddOptions, IfOptions, SubOptions
from delegraph.testing import subgraphs_model, tensor


@scenario
def claims_each_add(host: Host) -> Any:
    before = host.c_library("adds").num_invokes()
    result = run(host.interpreter(ISLANDS, host.load("adds")), X)
    return [result, host.c_library("adds").num_invokes() - before]


@scenario
def claims_all_adds_at_once(host: Host) -> Any:
    before = host.c_library("adds").num_invokes()
    result = run(host.interpreter(ISLANDS, host.load("adds", {"together": 1})), X)
    return [result, host.c_library("adds").num_invokes() - before]


@scenario
def two_delegates_in_order(host: Host) -> Any:
    first = host.load("adds", {"factor": 3, "max_nodes": 1})
    second = host.load("adds", {"factor": 0.5})
    return run(host.interpreter(ISLANDS, first, second), X)


@scenario
def one_delegate_for_two_interpreters(host: Host) -> Any:
    delegate = host.load("adds", {"factor": 2})
    one, two = host.interpreter(ISLANDS, delegate), host.interpreter(ONE_ADD, delegate)
    return [run(one, X), run(two, X, X), again(one, X + 1)]


@scenario
def one_delegate_in_four_threads(host: Host) -> Any:
    delegate = host.load("adds", {"factor": 2})
    wrong = []

    def work(shift: int) -> None:
        interpreter = host.interpreter(ISLANDS, delegate)
        expected = run(interpreter, X + shift)
        wrong.extend(1 for _ in range(200) if again(interpreter, X + shift) != expected)

    threads = [Thread(target=work, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(wrong)


def _resized(host: Host, flags: int) -> Any:
    interpreter = host.interpreter(
        ONE_ADD, host.load("resizes", {"flags": flags, "how": "prepare"})
    )
    results = [run(interpreter, X, X)]
    for shape in ([2, 3], [1], [6, 1]):
        for detail in interpreter.get_input_details():
            interpreter.resize_tensor_input(detail["index"], shape)
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        results.append(run(interpreter, x, x))
    return results


@scenario
def resizes_its_output_in_prepare(host: Host) -> Any:
    delegate = host.load("resizes", {"how": "double"})
    return run(host.interpreter(ADD_THEN_LOGISTIC, delegate), X, X)


@scenario
def resizes_to_the_broadcast_shape(host: Host) -> Any:
    delegate = host.load("resizes", {"how": "prepare"})
    return run(host.interpreter(BROADCAST, delegate), X, np.ones(1, np.float32))


@scenario
def works_in_a_tensor_of_its_own(host: Host) -> Any:
    interpreter = host.interpreter(ONE_ADD, host.load("resizes", {"how": "temporary"}))
    results = [run(interpreter, X, X)]
    for detail in interpreter.get_input_details():
        interpreter.resize_tensor_input(detail["index"], [2, 3])
    x = np.ones((2, 3), np.float32)
    return [*results, run(interpreter, x, x), again(interpreter, x + 1, x)]


def _dynamic(host: Host, how: str) -> Any:
    interpreter = host.interpreter(
        ADD_THEN_LOGISTIC, host.load("resizes", {"how": how, "flags": 1})
    )
    results = [run(interpreter, X + 3, X)]
    for first in (1, 4, 3, 3):
        x = X.copy()
        x[0] = first
        results.append(again(interpreter, x, X))
    return results


@scenario
def buffers_are_copied_when_read(host: Host) -> Any:
    library = host.c_library("buffers")
    before = library.num_copies_from()
    interpreter = host.interpreter(ADD_THEN_LOGISTIC, host.load("buffers"))
    results: list[Any] = [run(interpreter, X, X), library.num_copies_from() - before]
    results += [again(interpreter, X + 1, X), library.num_copies_from() - before]
    alone = host.interpreter(ONE_ADD, host.load("buffers"))
    alone.allocate_tensors()
    for detail in alone.get_input_details():
        alone.set_tensor(detail["index"], X)
    alone.invoke()
    return [*results, output(alone), library.num_copies_from() - before]


@scenario
def no_function_to_copy_a_buffer(host: Host) -> Any:
    interpreter = host.interpreter(ADD_THEN_LOGISTIC, host.load("buffers", {"copies": "no"}))
    interpreter.allocate_tensors()
    return words(interpreter.invoke) != "no error"


@scenario
def is_destroyed_with_its_users(host: Host) -> Any:
    library = host.c_library("adds")
    collect()
    before = library.num_live_delegates(), library.num_live_kernels()

    def alive() -> list[int]:
        collect()
        return [library.num_live_delegates() - before[0], library.num_live_kernels() - before[1]]

    delegate = host.load("adds")
    interpreter = host.interpreter(ISLANDS, delegate)
    run(interpreter, X)
    counts = [alive()]
    del delegate
    counts += [alive(), again(interpreter, X)]
    del interpreter
    return [*counts, alive()]


@scenario
def fails_while_claiming(host: Host) -> Any:
    said = words(lambda: host.interpreter(ONE_ADD, host.load("fails", {"at": "claim"})))
    return REPORTED.format("claim") in said


@scenario
def fails_at_invoke_and_goes_on(host: Host) -> Any:
    interpreter = host.interpreter(ONE_ADD, host.load("fails", {"at": "invoke", "after": 1}))
    good = run(interpreter, X, X)
    first, second = words(lambda: again(interpreter, X, X)), words(lambda: again(interpreter, X, X))
    return [good, *(REPORTED.format("invoke") in said for said in (first, second))]


@scenario
def several_subgraphs(host: Host) -> Any:
    branch = lambda name, other: ([(name, "p q", "r", other)], "p q", "r", {})  # noqa: E731
    main = (
        [("IF", "c x z", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2))],
        "c x z",
        "y",
        {"c": tensor((1,), "BOOL")},
    )
    model = subgraphs_model([main, branch("ADD", AddOptions()), branch("SUB", SubOptions())])
    interpreter = host.interpreter(model, host.load("adds", {"factor": 10}))
    return [run(interpreter, np.array([value]), X, X + 1) for value in (True, False, True)]


@scenario
def strings_that_it_allocates(host: Host) -> Any:
    interpreter = host.interpreter(SHOUT, host.load("strings"))
    interpreter.allocate_tensors()
    results = []
    for texts in ([b"one", b"", b"three"], [b"a longer first text", b"x", b"y"]):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array(texts))
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        results.append([bytes(text).decode() for text in found])
    return results


@scenario
def functions_of_the_context(host: Host) -> Any:
    library = host.c_library("slots")
    library.said.restype = ctypes.c_char_p
    interpreter = host.interpreter(TWO_SUBGRAPHS, host.load("slots"))
    result = run(interpreter, X)
    return [result, library.said().decode().splitlines(), library.plan_status_now() != 0]


@scenario
def inputs_that_a_delegate_changes(host: Host) -> Any:
    library = host.c_library("slots")
    library.said.restype = ctypes.c_char_p
    result = run(host.interpreter(TWO_SUBGRAPHS, host.load("slots", {"input": 0})), X)
    said = library.said().decode().splitlines()
    return [result, [line for line in said if line.startswith("init")]]


def _fails(host: Host, at: str) -> Any:
    def use() -> None:
        host.interpreter(ONE_ADD, host.load("fails", {"at": at})).allocate_tensors()

    return REPORTED.format(at) in words(use)


SCENARIOS |= {
    "fails_at_prepare": lambda host: _fails(host, "prepare"),
    "fails_at_init": lambda host: _fails(host, "init"),
    "none": lambda host: run(host.interpreter(ISLANDS), X),
    "options_reach_it": lambda host: run(
        host.interpreter(ISLANDS, host.load("adds", {"factor": 3, "max_nodes": "1"})), X
    ),
    "resize_of_inputs_static": lambda host: _resized(host, 0),
    "resize_of_inputs_dynamic": lambda host: _resized(host, 1),
    "resizes_a_dynamic_output_in_invoke": lambda host: _dynamic(host, "dynamic"),
    "reallocates_a_dynamic_output": lambda host: _dynamic(host, "realloc"),
    "unknown_option": lambda host: (
        "adds: no option colour" in words(lambda: host.load("adds", {"colour": "red"}))
    ),
    "fails_at_create": lambda host: (
        "no such accelerator" in words(lambda: host.load("fails", {"at": "create"}))
    ),
    "fails_silently_at_create": lambda host: (
        words(lambda: host.load("fails", {"at": "silently"})) != "no error"
    ),
}


def main(host_name: str, folder: str, *names: str) -> None:
    import delegraph_scenarios  # noqa: F401 - it adds its scenarios

    host = Host(host_name, folder)
    for name in names or SCENARIOS:
        if host.name == "delegraph" or not name.startswith("mine_"):
            print(json.dumps([name, None]), flush=True)
            print(json.dumps([name, SCENARIOS[name](host)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
