"""Run TFLite models in Python and hand parts of the graph to delegates.

Everything a user or a delegate's author needs is importable from here; each name is loaded when it
is first used, so that a plugin's light module stays light.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
