"""Checks of the section TFLM."""
