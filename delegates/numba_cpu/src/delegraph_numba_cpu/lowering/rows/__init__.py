"""Operators along one axis: reductions, SOFTMAX and normalization."""
