"""Planning strategies, one per module: tensors get shared objects or offsets in one buffer.

Strategies do not check the records and their order; the checks are in
:mod:`delegraph.memory.memory_management`. Ties are broken as TFLite breaks them, so the results are
TFLite's.
"""
