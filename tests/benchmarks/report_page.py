"""How long the page of ``delegraph report`` takes to open, in Chromium.

    python tests/benchmarks/report_page.py [MODEL] [--nodes 2000] [--rounds 5]

From asking for the file until its nodes are drawn and the browser has painted them; and how much of
that the page's thread computes, which other work on the machine changes less. Without MODEL, a
transformer of so many nodes: layers of attention with a mask that all of them read.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from delegraph.testing import graph_model
from delegraph.tools import Setup, report
from support.browser import chromium

PAINTED = """new Promise(done =>
    requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"""


def main() -> None:
    """Print the time of each round, and the median."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?")
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    program = chromium()
    if program is None:
        print("there is no Chromium here")
        return
    with tempfile.TemporaryDirectory() as folder:
        model = given.model
        if model is None:
            model = str(Path(folder, "transformer.tflite"))
            Path(model).write_bytes(transformer(given.nodes))
        path = Path(folder, "page.html")
        report(Setup(model)).save(path)
        print(f"{path.stat().st_size / 1e6:.2f} MB")
        times = opening_times(program, path, given.rounds)
        painted, computing = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"median {painted:.0f} ms, {computing:.0f} ms computing")


def opening_times(program: str, path: Path, rounds: int) -> list[tuple[float, float]]:
    """Return, for each round, the milliseconds until the page is painted, and of computation."""
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program)
        for _ in range(rounds):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(path.as_uri())
            painted = page.evaluate(PAINTED)
            found = session.send("Performance.getMetrics")["metrics"]
            computing = 1e3 * next(m["value"] for m in found if m["name"] == "TaskDuration")
            times.append((painted, computing))
            page.wait_for_selector(".vertex")  # made after the first picture
            nodes = page.locator(".vertex.node").count()
            print(f"{nodes} nodes in {painted:.0f} ms, {computing:.0f} ms computing", flush=True)
            page.close()
        browser.close()
    return times


def transformer(nodes: int) -> bytes:
    """Return a model with the graph of a transformer; its operators compute little."""
    written: list[tuple[str, str, str]] = []

    def node(op: str, *inputs: str) -> str:
        written.append((op, " ".join(inputs), f"t{len(written)}"))
        return written[-1][2]

    def normalized(x: str) -> str:
        centred = node("SUB", x, node("TANH", x))
        return node("MUL", centred, node("LOGISTIC", node("SQUARE", centred)))

    x, mask = node("NEG", "tokens"), node("NEG", "mask")
    while len(written) < nodes:
        y = normalized(x)
        query, key, value = (node("ABS", node("NEG", node("EXP", y))) for _ in range(3))
        scores = node("ADD", node("MUL", query, key), mask)
        attention = node("MUL", node("SOFTMAX", scores), value)
        x = node("ADD", x, node("ABS", node("NEG", attention)))
        y = normalized(x)
        gate = node("MUL", node("LOGISTIC", node("NEG", y)), node("ABS", y))
        x = node("ADD", x, node("NEG", gate))
    return graph_model(written, inputs="tokens mask", outputs=x)


if __name__ == "__main__":
    main()
