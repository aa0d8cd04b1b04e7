"""What a difference between a delegate's run and the core's means."""

from __future__ import annotations

import pytest

from delegraph import Capabilities, Interpreter, Limits
from delegraph.errors import NodeError, ResizeError
from delegraph.testing.sweep.judging import Run, difference_fault
from support.by_name import sines


def test_a_delegate_may_need_less_memory_than_the_core() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[], limits=Limits(memory=1 << 20))
    with pytest.raises(ResizeError) as refused:
        interpreter.resize_tensor_input(0, [1000, 1000])
    core, mine = Run([], [], refused.value), Run([], [], None, delegated=True)
    assert difference_fault(core, mine, Capabilities(), only_shapes=False) is None
    other = core._replace(error=NodeError("broken", node_index=0, op="SIN"))
    fault = difference_fault(other, mine, Capabilities(), only_shapes=False)
    assert fault is not None
    assert fault.kind == "computes alone"
