"""Planning strategies, one per module: tensors get shared objects or offsets in one buffer.

Strategies do not check the records and their order; the checks are in
:mod:`delegraph.memory.memory_management`. Of equal candidates, the strategies select the same as
TFLite, so results are TFLite's.
"""
