"""Planning strategies, one per module: tensors get shared objects or offsets in one buffer.

Each takes the records in the order in which it may look at them and trusts them; the checks are in
:mod:`delegraph.memory.memory_management`. Ties are broken as TFLite breaks them, so the results
are TFLite's.
"""
