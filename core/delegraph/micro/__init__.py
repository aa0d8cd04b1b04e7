"""TensorFlow Lite for Microcontrollers in Python: models in an arena of fixed size.

:class:`MicroInterpreter` runs a model in memory that the caller lends; :func:`estimate_arena` tells
how much a device needs; the allocators and planners they use can be used by themselves.

Open first: ``interpreter.py`` for running, ``estimate.py`` for sizes, ``allocator.py`` for what
lies in the arena, ``planners.py`` for where buffers go, ``targets.py`` for devices.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
