"""Operators that move values and compute nothing."""
