"""The tests get the delegates that they name, and no others."""

from __future__ import annotations

import os

# Else numba_cpu, where it is installed, takes the nodes that these delegates leave.
os.environ["DELEGRAPH_DEFAULT_DELEGATES"] = ""
