"""Delegates in a running graph: applied, guarded, measured, stood in for."""
