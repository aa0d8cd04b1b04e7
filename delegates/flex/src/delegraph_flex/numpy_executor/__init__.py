"""Runs TensorFlow's operators by NumPy and SciPy, where TensorFlow is not installed."""
