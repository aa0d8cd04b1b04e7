"""Scripts of the documentation as modules."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def script(path: str | Path) -> ModuleType:
    """Return a script as a module; *path* is relative to the folder ``docs``."""
    file = DOCS / path
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = module_from_spec(spec)  # where dataclasses look
    spec.loader.exec_module(module)
    return module
