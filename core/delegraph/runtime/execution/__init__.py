"""Runs prepared nodes: order, asynchronous nodes, one call at a time, cancellation, profiles."""
