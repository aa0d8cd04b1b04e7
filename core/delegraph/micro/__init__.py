"""TensorFlow Lite for Microcontrollers in Python: models in an arena of fixed size.

:class:`MicroInterpreter` runs a model in memory that the caller lends; :func:`estimate_arena` tells
how much a device needs; the allocators and planners behind them can be used by themselves.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
