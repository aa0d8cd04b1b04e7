from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import ArgumentError
from delegraph.tools import Setup
from delegraph.tools.model_call import allocate, model_call
from support.language_models import fed_back, language_model, tokens
from support.signatures import two_signatures


@pytest.mark.parametrize(
    ("signature", "names", "expected"),
    [(None, ("in", "out"), -2.0), ("negate", ("x", "y"), -2.0), ("wave", ("x", "y"), np.sin(2.0))],
)
def test_a_call_has_the_names_and_the_subgraph_of_its_signature(
    signature: str | None, names: tuple[str, str], expected: float
) -> None:
    call = model_call(Interpreter(model_content=two_signatures()), signature)
    assert [entry["name"] for entry in call.input_details()] == [names[0]]
    call.prepare([np.full(3, 2, np.float32)])
    call.invoke()
    ((details, values),) = call.outputs()
    assert details["name"] == names[1]
    np.testing.assert_allclose(values, [expected] * 3, rtol=1e-6)


def test_an_unknown_signature_is_told_with_the_ones_there_are() -> None:
    interpreter = Interpreter(model_content=two_signatures())
    message = r"no signature 'negat' \(did you mean 'negate'\?\); it has 'negate', 'wave'"
    with pytest.raises(ArgumentError, match=message):
        model_call(interpreter, "negat")


def test_allocating_a_signature_allocates_its_subgraph_only() -> None:
    interpreter = Interpreter(model_content=two_signatures())
    allocate(interpreter, "wave")
    assert [subgraph.is_allocated for subgraph in interpreter.session.subgraphs] == [False, True]


# -- states ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runtime", "share"), [("delegraph", 0), ("litert", 1), ("litert2", 0)], ids=str
)
def test_runs_hand_on_states_on_every_runtime(tmp_path: Path, runtime: Any, share: int) -> None:
    """Share: of their bytes, how many each run copies."""
    path = tmp_path / "language.tflite"
    path.write_bytes(language_model())
    expected, caches = fed_back(Interpreter(path))
    steps = [inputs for key, inputs in tokens() if key == "decode"]
    with Interpreter(path) as interpreter:
        prefill = interpreter.get_signature_runner("prefill_8")
        given = {name: np.zeros_like(values) for name, values in caches.items()}
        given = prefill(**next(inputs for _, inputs in tokens()), **given)
    with Setup(str(path), runtime, ("none",), use_default_delegates=False).interpreter() as host:
        call = model_call(host, "decode")
        names = [entry["name"] for entry in call.input_details()]
        values = [({**steps[0], **given})[name] for name in names]
        call.allocate(values)
        kept = call.keep_state(values)
        assert kept is not None
        for step, logits in zip(steps, expected, strict=True):
            call.fill([step.get(name, values[i]) for i, name in enumerate(names)])
            call.invoke()
            found = {details["name"]: array for details, array in call.outputs()}
            np.testing.assert_allclose(found["logits"], logits, rtol=1e-4, atol=1e-5)
        if runtime != "delegraph":  # whose states are in arrays of the runner
            for name, array in caches.items():
                np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)
        assert kept.names == tuple(sorted(caches))
        assert kept.bytes == sum(array.nbytes for array in caches.values())
        assert kept.copied_bytes() == share * kept.bytes


@pytest.mark.parametrize("signature", [None, "negate"])
def test_there_may_be_no_state(signature: str | None) -> None:
    call = model_call(Interpreter(model_content=two_signatures()), signature)
    values = [np.zeros(1, np.float32)]
    call.prepare(values)
    assert call.keep_state(values) is None
