"""What listing 50 installed plugins costs, 5 of them broken, beyond interpreter start.

Run ``python tests/benchmarks/plugins.py``. Each sample is a fresh process; plain interpreter starts
are interleaved with listings, and the best and the median of both are printed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.fake_distributions import write_plugin

PLUGINS = 50
BROKEN = 5
SAMPLES = 15
LISTING = """\
import sys
sys.path.insert(0, {site!r})
from delegraph.plugins import installed
plugins = installed().plugins
states = [p.state.value for p in plugins if p.name.startswith("p")]
assert states.count("broken") == {broken} and len(states) == {plugins}, states
heavy = [m for m in sys.modules if m.endswith("_heavy") or m in ("numpy", "click", "rich")]
assert not heavy, heavy
"""


def seconds(code: str) -> float:
    """Return the wall time of a fresh interpreter that runs *code*."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the cost of a listing and its goal."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        for i in range(PLUGINS):
            broken = i % (PLUGINS // BROKEN) == 0
            write_plugin(site, f"p{i:02}", "raise RuntimeError('no driver')" if broken else None)
        code = LISTING.format(site=folder, broken=BROKEN, plugins=PLUGINS)
        seconds(code)  # writes the .pyc files, as an installed plugin has them
        pairs = [(seconds("pass"), seconds(code)) for _ in range(SAMPLES)]
    extra = [listing - plain for plain, listing in pairs]
    print(f"interpreter start {1e3 * min(plain for plain, _ in pairs):6.1f} ms (best)")
    print(f"listing           {1e3 * min(extra):6.1f} ms beyond it (best)")
    print(f"                  {1e3 * statistics.median(extra):6.1f} ms beyond it (median)")
    print("goal              below 300 ms")


if __name__ == "__main__":
    main()
