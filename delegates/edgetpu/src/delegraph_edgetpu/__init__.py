"""A stand-in for the Edge TPU: its compiler, its custom operator and its devices, simulated."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
