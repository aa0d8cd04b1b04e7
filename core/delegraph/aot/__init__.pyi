from .backend import DelegraphTarget as DelegraphTarget
