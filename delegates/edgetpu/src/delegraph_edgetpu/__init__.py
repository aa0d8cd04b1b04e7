"""Simulation of the Edge TPU: a compiler, the custom operator, and devices."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
