"""Models of several subgraphs, by their name in the tests."""

from delegraph.testing.subgraphs import Graph, Op, model_of

__all__ = ["Graph", "Op", "model_of"]
