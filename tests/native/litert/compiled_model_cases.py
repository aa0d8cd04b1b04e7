"""What must work in every official ``CompiledModel``: ``python compiled_model_cases.py``.

``make litert-matrix`` runs it beside ``litert_cases.py``, in each release that has the class.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from ai_edge_litert import compiled_model as official
from litert_cases import run_cases

from delegraph import DelegateContext, DelegateFlags, FailurePolicy, Interpreter, Limits, Node
from delegraph.errors import OperatorError
from delegraph.native import compiled_model, litert_custom_op, litert_delegate, register_accelerator
from delegraph.native.litert.compiled_model_check import check_compiled_model
from delegraph.operators import CustomOp
from delegraph.testing import one_op_model, tensor
from support.by_name import ByName, ByNameKernel, X, sines

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS


def wanted(x: Any) -> Any:
    return np.sin(x) + x + np.sin(2 * x)


def run(model: Any, x: Any = X) -> Any:
    model.resize_input_tensor(0, x.shape, strict=False)
    (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
    source.write(x)
    model.run_by_index(0, [source], [target])
    return target.read(x.size, np.float32)


def without_xnnpack() -> Any:
    cpu = official.CpuOptions(kernel_mode=official.CpuKernelMode.BUILTIN)
    return official.Options(cpu_options=cpu)


def structs_and_environment() -> None:
    check_compiled_model(official)


def partitions_of_all() -> None:
    for before, names in ((True, {"sines", "products", "XNNPACK"}), (False, {"XNNPACK"})):
        delegates = [ByName("SIN", name="sines"), ByName("MUL", name="products")]
        model = compiled_model(sines(), delegates, before=before)
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-5)
        assert {node.delegate for node in model.placement.nodes} == names


def both_runtimes() -> None:
    own = Interpreter(model_content=sines(), delegates=[ByName("SIN", "ADD", "MUL")])
    own.allocate_tensors()
    own.set_tensor(0, X)
    own.invoke()
    found = run(compiled_model(sines(), [ByName("SIN", "ADD", "MUL")]))
    assert np.array_equal(found, own.get_tensor(own.get_output_details()[0]["index"]))


def resizing() -> None:
    for flags in (DelegateFlags.NONE, DYNAMIC):
        for options in (None, without_xnnpack()):
            model = compiled_model(sines(), [ByName("SIN", flags=flags)], options=options)
            for count in (4, 9, 1):
                x = np.linspace(-1, 1, count, dtype=np.float32)
                np.testing.assert_allclose(run(model, x), wanted(x), rtol=1e-5, atol=1e-6)


def errors() -> None:
    class Fails(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            raise KeyError("100%s on purpose")

    model = compiled_model(sines(), [ByName("SIN", kernel=Fails)])
    for _ in range(2):
        try:
            run(model)
        except KeyError as error:
            found = str(error)
        else:
            found = ""
        assert "on purpose" in found


def custom_operators() -> None:
    op = CustomOp("Negate", lambda x: -x)
    op.shape(lambda x: x.shape)
    model = one_op_model("Negate", [tensor((4,))], [tensor((4,))])
    for count in (4, 6):
        x = np.arange(count, dtype=np.float32)
        made = compiled_model(model, [], custom_ops={"Negate": op})
        assert np.array_equal(run(made, x), -x)


def c_kernels() -> None:
    """A kernel of LiteRT's C interface, here of functions of ctypes, that copies its input."""
    size_t, pointer = ctypes.c_size_t, ctypes.c_void_p
    library = ctypes.CDLL(str(next(Path(official.__file__).parent.glob("libLiteRt.*"))))

    def layouts(_data: Any, _n: int, inputs: int, _m: int, outputs: int) -> int:
        ctypes.memmove(outputs, inputs, 68)
        return 0

    def run_kernel(_data: Any, _n: int, inputs: Any, _m: int, outputs: Any) -> int:
        x, y = pointer(), pointer()
        library.LiteRtLockTensorBuffer(pointer(inputs[0]), ctypes.byref(x), 0)
        library.LiteRtLockTensorBuffer(pointer(outputs[0]), ctypes.byref(y), 1)
        ctypes.memmove(y.value or 0, x.value or 0, 16)
        library.LiteRtUnlockTensorBuffer(pointer(outputs[0]))
        library.LiteRtUnlockTensorBuffer(pointer(inputs[0]))
        return 0

    buffers = ctypes.POINTER(pointer)
    functions = [
        ctypes.CFUNCTYPE(ctypes.c_int, pointer, size_t, pointer, size_t, pointer)(layouts),
        ctypes.CFUNCTYPE(ctypes.c_int, pointer, size_t, buffers, size_t, buffers)(run_kernel),
    ]
    op = litert_custom_op("Same", get_output_layouts=functions[0], run=functions[1])
    model = one_op_model("Same", [tensor((4,))], [tensor((4,))])
    assert np.array_equal(run(compiled_model(model, [], custom_ops={"Same": op})), X)


def shadow() -> None:
    class Wrong(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            super().eval(context, node)
            context.tensors[node.outputs[0]].data[0] += 1

    for flags in (DelegateFlags.NONE, DYNAMIC):
        policy = FailurePolicy("shadow", validate=True)
        model = compiled_model(sines(), [ByName("SIN", flags=flags, kernel=Wrong)], failures=policy)
        np.testing.assert_allclose(run(model), wanted(X), rtol=1e-5)
        assert model.placement.quarantined == ("by_name",)


def memory_limits() -> None:
    model = compiled_model(sines(), [ByName("SIN")], limits=Limits(memory=100_000))
    run(model, np.zeros(1000, np.float32))
    try:
        run(model, np.zeros(10_000, np.float32))
    except OperatorError as error:
        found = str(error)
    else:
        found = ""
    assert "limit of 100000 bytes" in found


def registered_accelerators() -> None:
    environment = official.Environment.create()
    delegate = ByName("SIN")
    register_accelerator(environment, litert_delegate(delegate, model=sines()))
    model = official.CompiledModel.from_buffer(sines(), environment=environment)
    np.testing.assert_allclose(run(model), wanted(X), rtol=1e-5)
    assert delegate.calls.count("eval") == 2


def threads() -> None:
    model = compiled_model(sines(), [ByName("SIN")])
    wrong = []

    def work(number: int) -> None:
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        x = X + np.float32(number)
        inputs[0].write(x)
        for _ in range(200):
            model.run_by_index(0, inputs, outputs)
            if not np.allclose(outputs[0].read(4, np.float32), wanted(x), rtol=1e-5, atol=1e-5):
                wrong.append(number)

    all_of_them = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    assert wrong == []


def overhead() -> None:
    class Empty(ByNameKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            pass

    best = {}
    for name, delegates in (("ours", [ByName("SIN", kernel=Empty)]), ("native", [])):
        model: Any = compiled_model(sines(), delegates, options=without_xnnpack())
        buffers = model.create_input_buffers(0), model.create_output_buffers(0)
        taken = []
        for _ in range(3000):
            start = time.perf_counter()
            model.run_by_index(0, *buffers)
            taken.append(time.perf_counter() - start)
        best[name] = min(taken)
    print(f"microseconds {(best['ours'] - best['native']) / 2 * 1e6:.2f}")


CASES: list[Callable[[], None]] = [
    structs_and_environment,
    partitions_of_all,
    both_runtimes,
    resizing,
    errors,
    custom_operators,
    c_kernels,
    shadow,
    memory_limits,
    registered_accelerators,
    threads,
    overhead,
]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
