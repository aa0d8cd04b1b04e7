"""What listing 50 installed plugins costs, 5 of them broken, beyond interpreter start.

Run ``python tests/benchmarks/plugins.py``. Each run is a fresh process; plain starts of the
interpreter and listings take turns, and the best and the median of both are printed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from delegraph.tools import all_times, interleave
from support.fake_distributions import write_plugin

PLUGINS = 50
BROKEN = 5
SECONDS = 3.0
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


def run(code: str) -> None:
    """Run *code* in a fresh interpreter."""
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    """Print the time of a listing, and its goal."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        for i in range(PLUGINS):
            broken = i % (PLUGINS // BROKEN) == 0
            write_plugin(site, f"p{i:02}", "raise RuntimeError('no driver')" if broken else None)
        code = LISTING.format(site=folder, broken=BROKEN, plugins=PLUGINS)
        run(code)  # writes the .pyc files, as an installed plugin has them
        found = interleave({"start": lambda: run("pass"), "listing": lambda: run(code)}, SECONDS)
    start, listing = (all_times(found[name]) for name in ("start", "listing"))
    print(f"interpreter start {1e3 * start.min():6.1f} ms (best)")
    print(f"listing           {1e3 * (listing.min() - start.min()):6.1f} ms beyond it (best)")
    median = np.median(listing) - np.median(start)
    print(f"                  {1e3 * median:6.1f} ms beyond it (median)")
    print("goal              below 300 ms")


if __name__ == "__main__":
    main()
