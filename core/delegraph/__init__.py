"""Run TFLite models in Python and hand parts of the graph to delegates.

Everything a user or a delegate's author needs is importable from here; each name is loaded when it
is first used, so that a plugin's light module stays light.
"""

from delegraph.exports import exports_of

__version__ = "0.1.0"

__getattr__, __dir__ = exports_of(__name__, __file__)
