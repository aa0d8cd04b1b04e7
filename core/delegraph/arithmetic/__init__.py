"""What kernels and delegates compute with: fixed point, requantization, windows, shapes."""
