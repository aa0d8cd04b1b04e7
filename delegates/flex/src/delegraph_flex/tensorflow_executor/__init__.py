"""Executor that runs TensorFlow's operators by TensorFlow, if it is installed."""
