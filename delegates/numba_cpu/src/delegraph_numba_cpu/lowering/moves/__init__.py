"""Operators that move values without computing."""
