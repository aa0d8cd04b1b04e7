from __future__ import annotations

import sys

# Mutants are judged in forks, within limits that only Linux keeps.
collect_ignore = [] if sys.platform == "linux" else ["test_mutation.py"]
