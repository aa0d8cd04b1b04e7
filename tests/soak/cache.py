"""The kernel cache of numba_cpu, from which files vanish while processes load kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from delegraph.delegation.configuration import CACHE_VARIABLE
from soak.subjects import MODELS

SECONDS = 240

CHECK = """
import numpy as np
from delegraph import Interpreter
answers = []
for delegates in ([], ["numba_cpu"]):
    with Interpreter({model!r}, delegates=delegates) as interpreter:
        interpreter.allocate_tensors()
        detail = interpreter.get_input_details()[0]
        interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
        interpreter.invoke()
        answers.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
assert np.array_equal(*answers), answers
"""


def private_cache(folder: Path) -> None:
    """Make this process and its children use a copy of the user's cache in *folder*."""
    from delegraph_numba_cpu.library.cache import kernel_cache
    from delegraph_numba_cpu.library.cpu import level_named

    kept = kernel_cache(level_named("auto"))
    if kept.folder.is_dir():
        shutil.copytree(kept.folder, folder / kept.namespace / kept.version)
    os.environ[CACHE_VARIABLE] = str(folder)


def vanish(folder: Path, chance: Random) -> None:
    """Remove, truncate or alter one file of the cache while a new process uses its kernels.

    Raises:
        AssertionError: the process failed, or its answer is another than the core's.
    """
    files = sorted(folder.rglob("*.blob"))
    command = [sys.executable, "-c", CHECK.format(model=str(MODELS / "digits_int8.tflite"))]
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=said, stderr=said)
        if files:
            _damage(chance.choice(files), chance)
        code = child.wait(SECONDS)
        said.seek(0)
        assert code == 0, said.read().decode(errors="replace")


def _damage(path: Path, chance: Random) -> None:
    content = bytearray(path.read_bytes())
    kind = chance.randrange(3)
    if kind == 0:
        path.unlink()
        return
    if kind == 1:
        content = content[: chance.randrange(len(content))]
    else:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    new = path.with_suffix(".changed")
    new.write_bytes(content)
    new.chmod(0o600)
    new.replace(path)
