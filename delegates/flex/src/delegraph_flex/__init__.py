"""Runs the TensorFlow operators of ``.tflite`` files (SELECT_TF_OPS), and makes such files."""

from __future__ import annotations

__all__: list[str] = []
