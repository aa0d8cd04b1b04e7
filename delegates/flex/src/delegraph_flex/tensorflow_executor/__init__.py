"""Runs TensorFlow's operators by TensorFlow itself, where it is installed."""
