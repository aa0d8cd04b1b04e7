"""Run TFLite models in Python, and let delegates compute parts of the graph.

Everything that users and authors of delegates need can be imported from here. Each name is loaded
when it is first used, so that a plugin's entry-point module is imported quickly.
"""

from delegraph.exports import exports_of

__version__ = "0.1.0"

__getattr__, __dir__ = exports_of(__name__, __file__)
