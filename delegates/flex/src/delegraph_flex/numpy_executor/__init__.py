"""Executor that runs TensorFlow's operators by NumPy and SciPy, without TensorFlow."""
