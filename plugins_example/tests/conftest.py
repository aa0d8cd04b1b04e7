"""Tests run with the delegates that they name, without default delegates."""

from __future__ import annotations

import os

# Else numba_cpu, where it is installed, takes the nodes that these delegates leave.
os.environ["DELEGRAPH_DEFAULT_DELEGATES"] = ""
