"""Executing a model: interpreter, subgraph state, invoke loop, signatures."""
