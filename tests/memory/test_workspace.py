"""Working memory shared by the nodes of a subgraph."""

import numpy as np

from delegraph.memory.workspace import Workspace


def test_blocks_of_one_node_do_not_overlap():
    workspace = Workspace()
    workspace.begin_node()
    a, b = workspace.reserve((3,), np.float32), workspace.reserve((5,), np.int8)
    workspace.commit()
    assert not np.shares_memory(a.data, b.data)
    assert b.data.ctypes.data % 64 == 0


def test_a_block_is_usable_before_the_memory_is_there():
    workspace = Workspace()
    workspace.begin_node()
    block = workspace.reserve((2, 3), np.uint16)
    block.data[...] = 7
    assert block.data.sum() == 42


def test_blocks_move_when_the_memory_grows():
    workspace = Workspace()
    workspace.begin_node()
    first = workspace.reserve((4,), np.int32)
    workspace.commit()
    workspace.begin_node()
    second = workspace.reserve((1000,), np.int32)
    workspace.commit()
    assert np.shares_memory(first.data, second.data)


def test_a_node_that_is_kept_apart_shares_with_no_other():
    workspace = Workspace()
    workspace.begin_node()
    before = workspace.reserve((10,), np.float32)
    workspace.begin_node()
    apart = [workspace.reserve((100,), np.float32) for _ in range(2)]
    workspace.keep_apart()
    workspace.begin_node()
    after = workspace.reserve((5,), np.float32)
    assert workspace.needed == 40 + 2 * 400
    workspace.commit()
    assert np.shares_memory(before.data, after.data)
    others = [before, after, *apart]
    for block in apart:
        assert block.data.ctypes.data % 64 == 0
        assert not any(np.shares_memory(block.data, o.data) for o in others if o is not block)
    assert workspace.size == 40
