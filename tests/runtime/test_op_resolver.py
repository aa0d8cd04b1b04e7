"""Which implementation an operator gets."""

import subprocess
import sys

import numpy as np
import pytest

from delegraph import Interpreter, Rejection, builtin_registration
from delegraph.errors import UnresolvedOpError
from delegraph.schema.options import BroadcastToOptions
from delegraph.testing import constant, delegraph_outputs, one_op_model, tensor
from support.by_name import ByName
from support.chosen_plugins import use_plugins_of
from support.fake_distributions import write_plugin
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


PLUGIN = """\
from delegraph.plugins import CustomOpSpec, hookimpl

def _load():
    from delegraph import custom_op, unregister_custom_op
    @custom_op("ItsOwnName")
    def twice(x): return 2 * x
    unregister_custom_op("ItsOwnName")
    return twice

@hookimpl
def delegraph_custom_ops():
    return [CustomOpSpec("Twice", "doubles", _load)]
"""


def test_an_installed_plugin_provides_a_custom_operator(tmp_path, monkeypatch):
    write_plugin(tmp_path, "doubling", PLUGIN)
    use_plugins_of(monkeypatch, tmp_path)
    model = one_op_model("Twice", [tensor((2,))], [tensor((2,))])
    (y,) = delegraph_outputs(model, [np.float32([3, 4])])
    assert y.tolist() == [6, 8]
    details = Interpreter(model_content=model)._get_ops_details()
    assert [node["op_name"] for node in details] == ["Twice"]


def test_a_custom_operator_that_delegates_refuse_says_why():
    class Refusing(ByName):
        def is_node_supported_by_delegate(self, registration, node, context):
            return Rejection("size", "larger than it can be")

    delegates = [Refusing(name=name) for name in ("small", "tiny")]
    model = one_op_model("Twice", [tensor((2,))], [tensor((2,))])
    interpreter = Interpreter(model_content=model, delegates=delegates)
    with pytest.raises(UnresolvedOpError) as caught:
        interpreter.allocate_tensors()
    assert str(caught.value).splitlines()[1] == (
        "  Twice (1 node): delegate 'small' refuses it: larger than it can be; "
        "delegate 'tiny' refuses it: larger than it can be"
    )
