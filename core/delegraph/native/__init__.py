"""TFLite's C interface through ctypes: LiteRT's delegates in Delegraph, Delegraph's in LiteRT.

Open first: ``litert/delegate.py`` for our delegates in the official interpreters,
``compiled/external_delegate.py`` for compiled delegates in ours, ``abi.py`` for the C structs that
both need. Names are loaded when they are first used.
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(__name__, __file__)
