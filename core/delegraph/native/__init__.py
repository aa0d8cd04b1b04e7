"""TFLite's C interface in ctypes: compiled delegates for Delegraph, Python delegates for LiteRT.

Open first: ``litert/delegate.py`` for Delegraph's delegates in the official interpreters,
``litert/compiled_model.py`` for the same delegates in the official ``CompiledModel``,
``compiled/external_delegate.py`` for compiled delegates in Delegraph's interpreter, ``abi.py`` for
the C structs of both directions. Names are loaded when they are first used.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
