"""Storage, building, linking and loading of compiled kernels."""
