"""The op table, and NumPy kernels by family; :mod:`delegraph.kernels.ops` loads them all."""
