"""What must work in every official runtime: ``python litert_cases.py`` runs it in the one there is.

``make litert-matrix`` does so in many versions; the suite runs the same and more, in one. Prints a
line a case, ``name ok`` or ``name`` and what went wrong, and ends with 0 when all is well.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from delegraph import DelegateContext, DelegateFlags, Interpreter, Node, OpResolverType
from delegraph.native import LiteRtInterpreter
from delegraph.native.litert.installed_runtimes import interpreter_module
from delegraph.native.litert.self_check import check_runtime
from support.by_name import ByName, ByNameKernel, X, sines
from support.policy_models import doubling

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
ALONE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
WANTED = np.sin(X) + X + np.sin(2 * X)


def interpreter(*delegates: Any, content: bytes | None = None, **arguments: Any) -> Any:
    arguments.setdefault("experimental_op_resolver_type", ALONE)
    return LiteRtInterpreter(model_content=content or sines(), delegates=delegates, **arguments)


def run(made: Any, x: Any = X) -> Any:
    first = made.get_input_details()[0]["index"]
    made.resize_tensor_input(first, x.shape)
    made.allocate_tensors()
    made.set_tensor(first, x)
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"])


def structs() -> None:
    check_runtime(interpreter_module())


def partitions() -> None:
    made = interpreter(ByName("SIN"))
    np.testing.assert_allclose(run(made), WANTED, rtol=1e-6)
    assert [partition.nodes for partition in made.placement.partitions] == [(0,), (3,)]


def both_hosts() -> None:
    own = Interpreter(model_content=sines(), delegates=[ByName("SIN", "ADD", "MUL")])
    assert np.array_equal(run(interpreter(ByName("SIN", "ADD", "MUL"))), run(own))


def several_delegates_and_xnnpack() -> None:
    delegates = ByName("SIN", name="sines"), ByName("MUL", name="products")
    made = interpreter(*delegates, experimental_op_resolver_type=OpResolverType.AUTO)
    np.testing.assert_allclose(run(made), WANTED, rtol=1e-6)
    taken = {node.delegate for node in made.placement.nodes}
    assert {"sines", "products"} < taken | {None}, taken


def resizing() -> None:
    for flags in (DelegateFlags.NONE, DYNAMIC):
        for resolver in (ALONE, OpResolverType.AUTO):
            made = interpreter(ByName("SIN", flags=flags), experimental_op_resolver_type=resolver)
            for count in (4, 9, 1):
                x = np.linspace(-1, 1, count, dtype=np.float32)
                np.testing.assert_allclose(
                    run(made, x), np.sin(x) + x + np.sin(2 * x), rtol=1e-5, atol=1e-6
                )


def loops() -> None:
    delegate = ByName("ADD", flags=DYNAMIC)
    found = run(interpreter(delegate, content=doubling()), np.array([3], np.float32))
    assert found.tolist() == [13]
    assert delegate.calls.count("eval") == 3


def errors() -> None:
    class Fails(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            raise KeyError("100%s on purpose")

    made = interpreter(ByName("SIN", kernel=Fails))
    for _ in range(2):
        try:
            run(made)
        except KeyError as error:
            found = str(error)
        else:
            found = ""
        assert "on purpose" in found


def overhead() -> None:
    class Empty(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            pass

    made = interpreter(ByName("SIN", kernel=Empty))  # two partitions
    run(made)
    best = {}
    for name, invoke in (("ours", made._interpreter.invoke), ("native", _native().invoke)):
        taken = []
        for _ in range(3000):
            start = time.perf_counter()
            invoke()
            taken.append(time.perf_counter() - start)
        best[name] = min(taken)
    print(f"microseconds {(best['ours'] - best['native']) / 2 * 1e6:.2f}")


def _native() -> Any:
    made = interpreter()
    run(made)
    return made._interpreter


CASES: list[Callable[[], None]] = [
    structs,
    partitions,
    both_hosts,
    several_delegates_and_xnnpack,
    resizing,
    loops,
    errors,
    overhead,
]


def run_cases(cases: list[Callable[[], None]]) -> int:
    """Run all cases; return how many failed."""
    failed = 0
    for case in cases:
        try:
            case()
        except Exception:  # noqa: BLE001 - shown, and the next one follows
            failed += 1
            print(case.__name__, traceback.format_exc().strip().splitlines()[-1])
            traceback.print_exc()
        else:
            print(case.__name__, "ok")
    return failed


if __name__ == "__main__":
    sys.exit(run_cases(CASES))
