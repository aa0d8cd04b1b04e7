"""Run TFLite models in Python and hand parts of the graph to delegates."""
