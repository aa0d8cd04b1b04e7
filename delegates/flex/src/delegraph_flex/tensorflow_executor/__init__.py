"""Executor that runs TensorFlow's operators with TensorFlow, if it is installed."""
