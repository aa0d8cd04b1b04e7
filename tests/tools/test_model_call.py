from __future__ import annotations

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import ArgumentError
from delegraph.tools.model_call import model_call
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
