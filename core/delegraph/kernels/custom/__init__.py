"""Kernels of the custom operators that TensorFlow Lite has."""
