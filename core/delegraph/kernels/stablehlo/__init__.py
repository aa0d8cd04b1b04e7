"""NumPy kernels of the StableHLO operators.

``elementwise.py`` has the operators that compute each element separately (ADD, COMPARE, SELECT,
CONVERT, ...), ``data_movement.py`` the operators that only move elements (RESHAPE, TRANSPOSE,
SLICE, ...). Each other operator has its own file. ``body.py`` runs the subgraphs that define the
computation of some operators. STABLEHLO_CASE and STABLEHLO_WHILE are in
:mod:`delegraph.kernels.control_flow`.
"""
