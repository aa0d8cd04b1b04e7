"""Runs prepared nodes: steps, order, one call at a time, cancellation, profiles."""
