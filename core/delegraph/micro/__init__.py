"""TensorFlow Lite for Microcontrollers in Python: models in an arena of fixed size.

:class:`MicroInterpreter` runs a model in memory that the caller provides. :func:`estimate_arena`
returns the memory that a device needs. Allocators and planners can be used separately.

The arena has two ends. Its head has tensors and scratch buffers, which share memory by a plan; its
tail has persistent memory. Open first: ``interpreter.py`` for running, ``estimate.py`` for sizes,
``allocator.py`` for the content of the arena, ``planners.py`` for the offsets of buffers,
``targets.py`` for devices.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
