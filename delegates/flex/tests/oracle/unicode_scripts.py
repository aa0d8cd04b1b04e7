"""Writes the table of scripts as TensorFlow has it: ``python unicode_scripts.py``.

A line says which script the code points have from one on. Other versions of TensorFlow may be built
with another Unicode library, and give another table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

import delegraph_flex

TABLE = Path(delegraph_flex.__file__).parent / "unicode_scripts.txt"
HEADER = """\
# Scripts of code points: where each run begins, and the number that ICU gives to its script.
# Those of TensorFlow {version}, which has ICU 69, of Unicode 13. Written by
# tests/oracle/unicode_scripts.py, which asks it.
"""


def main() -> None:
    """Write the table."""
    points = np.arange(sys.maxunicode + 2, dtype=np.int32)
    scripts = tf.raw_ops.UnicodeScript(input=points).numpy()
    starts = np.flatnonzero(np.diff(scripts, prepend=-2))
    lines = [f"{start:X} {scripts[start]}\n" for start in starts]
    TABLE.write_text(HEADER.format(version=tf.__version__) + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
