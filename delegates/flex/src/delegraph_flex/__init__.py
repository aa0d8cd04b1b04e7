"""Flex: runs TensorFlow's operators in ``.tflite`` files (SELECT_TF_OPS), and makes these files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
