"""NumPy kernels of the StableHLO operators.

``elementwise.py`` has those that work on each element alone (ADD, COMPARE, SELECT, CONVERT, ...),
``data_movement.py`` those that only move elements (RESHAPE, TRANSPOSE, SLICE, ...); the others have
a file each. ``body.py`` runs the computations that operators are given as subgraphs.
STABLEHLO_CASE and STABLEHLO_WHILE are in :mod:`delegraph.kernels.control_flow`.
"""
