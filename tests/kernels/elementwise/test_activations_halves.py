"""LOGISTIC of 16-bit floats rounds each step to 16 bits, as the official kernel does."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import Interpreter, TensorType
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.testing import one_op_model, tensor
from support.official import official_outputs


@pytest.mark.parametrize("type_", ["FLOAT16", "BFLOAT16"])
def test_every_number_is_the_official_one(type_: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(NUMPY_DTYPES[TensorType[type_]])
    numbers = every[~np.isnan(every.astype(np.float32))]
    x, y = (tensor(numbers.shape, type_) for _ in range(2))
    model = one_op_model("LOGISTIC", [x], [y])
    interpreter = Interpreter(model_content=model, delegates=[])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, numbers)
    interpreter.invoke()
    (wanted,) = official_outputs(model, [numbers])
    found = interpreter.get_tensor(1)
    np.testing.assert_array_equal(found.view(np.uint16), np.asarray(wanted).view(np.uint16))
