"""TFLM's own results, bit for bit; `make tflm-record` made them."""

import pytest

from delegraph import Interpreter
from micro.wheel.goldens import FOLDER, difference, read, run

FILES = [path for path in sorted(FOLDER.glob("*.json.xz")) if "differences" not in path.name]


@pytest.mark.repetition(2)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_results_are_those_of_the_wheel(path):
    goldens = list(read(path))
    apart = {g.name: difference(run(g.model, g.steps), g.outputs) for g in goldens}
    assert {name: words for name, words in apart.items() if words} == {}
    assert goldens


def core_results(golden):
    interpreter = Interpreter(model_content=golden.model, delegates=[])
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    results = []
    for step in golden.steps:
        if step == "reset":
            interpreter.reset_all_variables()
            continue
        for detail, array in zip(inputs, step, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        results.append([interpreter.get_tensor(detail["index"]) for detail in outputs])
    return results


def test_the_interpreter_runs_signal_operators_as_well():
    goldens = list(read(FOLDER / "signal.json.xz"))[::3]
    apart = {g.name: difference(core_results(g), g.outputs) for g in goldens}
    assert {name: words for name, words in apart.items() if words} == {}
