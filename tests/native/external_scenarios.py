"""What is done with compiled delegates, in Delegraph and in stock LiteRT: a program of its own.

``python external_scenarios.py HOST FOLDER [NAME...]`` prints a line of JSON for each scenario: its
name and what came out. A crash ends it, so that whoever started it knows which one it was.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from graph_model import graph_model, subgraphs_model
from one_op import constant, tensor

from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import AddOptions, IfOptions

SCENARIOS: dict[str, Callable[[Host], Any]] = {}

RELU = AddOptions(fused_activation_function=ActivationFunctionType.RELU)
ISLANDS = graph_model(
    [
        ("ADD", "x c", "a", RELU),
        ("LOGISTIC", "a", "b"),
        ("ADD", "b x", "d", AddOptions()),
        ("ADD", "d d", "y", AddOptions()),
    ],
    inputs="x",
    outputs="y",
    tensors={"c": constant(np.array([0.5, -0.5, 1, 0], np.float32))},
)
ONE_ADD = graph_model([("ADD", "x z", "y", AddOptions())], inputs="x z", outputs="y")
BROADCAST = graph_model(
    [("ADD", "x z", "y", AddOptions())], inputs="x z", outputs="y", tensors={"z": tensor((1,))}
)
ADD_THEN_LOGISTIC = graph_model(
    [("ADD", "x z", "a", AddOptions()), ("LOGISTIC", "a", "y")], inputs="x z", outputs="y"
)
X = np.array([-1, 0, 2, 3], np.float32)


class Host:
    """One runtime and the delegates to load into it; both have the official class's methods."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder = name, Path(folder)
        if name == "delegraph":
            from delegraph import Interpreter, load_delegate

            self.Interpreter, self.load_delegate, options = Interpreter, load_delegate, {}
        else:
            from ai_edge_litert import interpreter as official

            self.Interpreter, self.load_delegate = official.Interpreter, official.load_delegate
            resolver = official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            options = {"experimental_op_resolver_type": resolver}
        self.options: dict[str, Any] = options

    def path(self, library: str) -> str:
        return str(self.folder / f"lib{library}.so")

    def library(self, library: str) -> ctypes.CDLL:
        return ctypes.CDLL(self.path(library))

    def load(self, library: str, options: dict[str, Any] | None = None) -> Any:
        return self.load_delegate(self.path(library), options)

    def interpreter(self, model: bytes, *delegates: Any, **more: Any) -> Any:
        return self.Interpreter(
            model_content=model, experimental_delegates=list(delegates), **self.options, **more
        )


def scenario(function: Callable[[Host], Any]) -> Callable[[Host], Any]:
    SCENARIOS[function.__name__] = function
    return function


def run(interpreter: Any, *arrays: Any) -> list[Any]:
    """Allocate, set the inputs, invoke; return the first output."""
    interpreter.allocate_tensors()
    return again(interpreter, *arrays)


def again(interpreter: Any, *arrays: Any) -> list[Any]:
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return output(interpreter)


def output(interpreter: Any) -> list[Any]:
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return [list(found.shape), [round(float(v), 5) for v in found.reshape(-1)]]


def words(function: Callable[[], Any]) -> str:
    """Return what a call raises; its type is left out, the message is what counts."""
    try:
        function()
    except Exception as error:  # the message is the result
        return str(error)
    return "no error"


# -- same in both ------------------------------------------------------------------------------


@scenario
def none(host: Host) -> Any:
    return run(host.interpreter(ISLANDS), X)


@scenario
def claims_each_add(host: Host) -> Any:
    before = host.library("adds").num_invokes()
    result = run(host.interpreter(ISLANDS, host.load("adds")), X)
    return [result, host.library("adds").num_invokes() - before]


@scenario
def claims_all_adds_at_once(host: Host) -> Any:
    before = host.library("adds").num_invokes()
    result = run(host.interpreter(ISLANDS, host.load("adds", {"together": 1})), X)
    return [result, host.library("adds").num_invokes() - before]


@scenario
def options_reach_it(host: Host) -> Any:
    return run(host.interpreter(ISLANDS, host.load("adds", {"factor": 3, "max_nodes": "1"})), X)


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
def resize_of_inputs_static(host: Host) -> Any:
    return _resized(host, 0)


@scenario
def resize_of_inputs_dynamic(host: Host) -> Any:
    return _resized(host, 1)


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


@scenario
def resizes_a_dynamic_output_in_invoke(host: Host) -> Any:
    delegate = host.load("resizes", {"how": "dynamic", "flags": 1})
    interpreter = host.interpreter(ADD_THEN_LOGISTIC, delegate)
    results = [run(interpreter, X + 3, X)]
    for first in (1, 4, 3):
        x = X.copy()
        x[0] = first
        results.append(again(interpreter, x, X))
    return results


@scenario
def buffers_are_copied_when_read(host: Host) -> Any:
    library = host.library("buffers")
    interpreter = host.interpreter(ADD_THEN_LOGISTIC, host.load("buffers"))
    results: list[Any] = [run(interpreter, X, X), library.num_copies_from()]
    results += [again(interpreter, X + 1, X), library.num_copies_from()]
    alone = host.interpreter(ONE_ADD, host.load("buffers"))
    alone.allocate_tensors()
    for detail in alone.get_input_details():
        alone.set_tensor(detail["index"], X)
    alone.invoke()
    return [*results, output(alone), library.num_copies_from()]


@scenario
def no_function_to_copy_a_buffer(host: Host) -> Any:
    interpreter = host.interpreter(ADD_THEN_LOGISTIC, host.load("buffers", {"copies": "no"}))
    interpreter.allocate_tensors()
    return words(interpreter.invoke) != "no error"


@scenario
def is_destroyed_with_its_users(host: Host) -> Any:
    library = host.library("adds")
    gc.collect()
    before = library.num_live_delegates(), library.num_live_kernels()

    def alive() -> list[int]:
        gc.collect()
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
def unknown_option(host: Host) -> Any:
    return "adds: no option colour" in words(lambda: host.load("adds", {"colour": "red"}))


@scenario
def fails_at_create(host: Host) -> Any:
    return "no such accelerator" in words(lambda: host.load("fails", {"at": "create"}))


@scenario
def fails_silently_at_create(host: Host) -> Any:
    return words(lambda: host.load("fails", {"at": "silently"})) != "no error"


@scenario
def fails_while_claiming(host: Host) -> Any:
    said = words(lambda: host.interpreter(ONE_ADD, host.load("fails", {"at": "claim"})))
    return REPORTED.format("claim") in said


@scenario
def fails_at_prepare(host: Host) -> Any:
    def use() -> None:
        host.interpreter(ONE_ADD, host.load("fails", {"at": "prepare"})).allocate_tensors()

    return REPORTED.format("prepare") in words(use)


@scenario
def fails_at_init(host: Host) -> Any:
    def use() -> None:
        host.interpreter(ONE_ADD, host.load("fails", {"at": "init"})).allocate_tensors()

    return REPORTED.format("init") in words(use)


@scenario
def fails_at_invoke_and_goes_on(host: Host) -> Any:
    interpreter = host.interpreter(ONE_ADD, host.load("fails", {"at": "invoke", "after": 1}))
    good = run(interpreter, X, X)
    first, second = words(lambda: again(interpreter, X, X)), words(lambda: again(interpreter, X, X))
    return [good, *(REPORTED.format("invoke") in said for said in (first, second))]


REPORTED = "{} failed: 3 of 1099511627776, 2.500, five six 7 -8 9.0 x%"


@scenario
def several_subgraphs(host: Host) -> Any:
    branch = lambda name, other: ([(name, "p q", "r", other)], "p q", "r", {})  # noqa: E731
    from delegraph.schema.options import SubOptions

    main = (
        [("IF", "c x z", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2))],
        "c x z",
        "y",
        {"c": tensor((1,), "BOOL")},
    )
    model = subgraphs_model([main, branch("ADD", AddOptions()), branch("SUB", SubOptions())])
    interpreter = host.interpreter(model, host.load("adds", {"factor": 10}))
    return [run(interpreter, np.array([value]), X, X + 1) for value in (True, False, True)]


SHOUT = graph_model(
    [("Shout", "x", "y")],
    inputs="x",
    outputs="y",
    tensors={"x": tensor((3,), "STRING"), "y": tensor((3,), "STRING")},
)


@scenario
def strings_that_it_allocates(host: Host) -> Any:
    interpreter = host.interpreter(SHOUT, host.load("strings"))
    interpreter.allocate_tensors()
    results = []
    for words in ([b"one", b"", b"three"], [b"a longer first word", b"x", b"y"]):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array(words))
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        results.append([bytes(word).decode() for word in found])
    return results


@scenario
def functions_of_the_context(host: Host) -> Any:
    library = host.library("slots")
    library.said.restype = ctypes.c_char_p
    interpreter = host.interpreter(TWO_SUBGRAPHS, host.load("slots"))
    result = run(interpreter, X)
    return [result, library.said().decode().splitlines(), library.plan_status_now() != 0]


@scenario
def inputs_that_a_delegate_changes(host: Host) -> Any:
    return run(host.interpreter(TWO_SUBGRAPHS, host.load("slots", {"input": 0})), X)


TWO_SUBGRAPHS = subgraphs_model(
    [
        (
            [
                ("ADD", "x c", "a", RELU),
                ("LOGISTIC", "a", "b"),
                ("ADD", "b x", "d", AddOptions()),
                ("ADD", "d d", "y", AddOptions()),
            ],
            "x",
            "y",
            {"c": constant(np.array([0.5, -0.5, 1, 0], np.float32))},
        ),
        ([("LOGISTIC", "p", "q")], "p", "q", {}),
    ],
    metadata={"about": b"forty-two"},
)


# -- Delegraph alone ---------------------------------------------------------------------------


@scenario
def mine_applied_later_and_taken_off(host: Host) -> Any:
    interpreter = host.interpreter(ISLANDS)
    results = [run(interpreter, X)]
    interpreter.modify_graph_with_delegate(host.load("adds", {"factor": 3}))
    results += [again(interpreter, X), len(interpreter.placement.partitions)]
    interpreter.remove_all_delegates()
    results.append(again(interpreter, X))
    gc.collect()
    library = host.library("adds")
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
        on_failure="fallback",
    )
    results = [run(interpreter, X, X), again(interpreter, X + 1, X)]
    return [*results, [incident.error for incident in interpreter.incidents]]


@scenario
def mine_under_validation_and_shadow(host: Host) -> Any:
    interpreter = host.Interpreter(
        model_content=ONE_ADD,
        delegates=[host.load("adds", {"factor": 3})],
        on_failure="shadow",
        shadow_share=1.0,
        validate=True,
    )
    return [run(interpreter, X, X), [i.is_quarantined for i in interpreter.incidents]]


@scenario
def mine_failing_claim_leaves_the_graph(host: Host) -> Any:
    library = host.library("fails")
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
    library = host.library("buffers")
    interpreter = host.interpreter(ADD_THEN_LOGISTIC, host.load("buffers"))
    run(interpreter, X, X)
    said = words(lambda: again(interpreter, X - 2000, X))
    before = library.num_frees()
    interpreter.close()
    return [said, library.num_frees() - before]


@scenario
def mine_in_circles(host: Host) -> Any:
    """An interpreter and its delegate that only the garbage collector can free."""
    library = host.library("adds")
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
    """Bytes of C memory that each of many interpreters leaves behind; then with a leak put in."""
    library = host.library("describes")
    library.bytes_in_use.restype = ctypes.c_size_t

    def use() -> None:
        interpreter = host.interpreter(ISLANDS, host.load("adds"))
        run(interpreter, X)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [1])
        interpreter.allocate_tensors()
        interpreter.close()

    def grown(leak: int, times: int = 200) -> float:
        for _ in range(100):
            use()
        gc.collect()
        before = library.bytes_in_use()
        for _ in range(times):
            use()
            library.leak(leak)
        gc.collect()
        return (library.bytes_in_use() - before) / times

    return [grown(0), grown(100)]


def main(host_name: str, folder: str, *names: str) -> None:
    host = Host(host_name, folder)
    for name in names or SCENARIOS:
        if host.name == "delegraph" or not name.startswith("mine_"):
            print(json.dumps([name, None]), flush=True)
            print(json.dumps([name, SCENARIOS[name](host)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
