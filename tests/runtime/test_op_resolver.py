"""Which implementation an operator gets."""

import subprocess
import sys

import numpy as np
import pytest

from delegraph import builtin_registration
from delegraph.schema.options import BroadcastToOptions
from delegraph.testing import constant, delegraph_outputs, one_op_model, tensor
from support.official import official_outputs


@pytest.mark.parametrize(("version", "known"), [(1, "2 to 4"), (5, "2 to 4"), (0, "2 to 4")])
def test_a_version_outside_the_range_is_refused_at_load(version, known):
    inputs = [tensor((3,)), constant(np.int32([2, 3]))]
    model = one_op_model(
        "BROADCAST_TO", inputs, [tensor((2, 3))], BroadcastToOptions(), version=version
    )
    with pytest.raises(ValueError, match="Didn't find op"):
        official_outputs(model, [np.ones(3, np.float32)])
    with pytest.raises(ValueError, match=f"versions {known} implemented"):
        delegraph_outputs(model, [np.ones(3, np.float32)])


def test_kernels_are_there_for_who_asks_for_the_first_one():
    code = "import delegraph; print(delegraph.builtin_registration('ADD').name)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert answer.stdout.split() == [b"ADD"]


def test_an_operator_without_a_kernel_has_no_registration():
    assert builtin_registration("NO_SUCH_OPERATOR") is None
