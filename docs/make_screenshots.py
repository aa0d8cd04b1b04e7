"""Takes the pictures of pages that a browser draws: ``python docs/make_screenshots.py``.

They show pages of ``delegraph report``, in light and in dark colours. Needs the example plugin,
Playwright and a Chromium. No test compares the pictures: letters differ between browsers.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

from delegraph.tools import InputRequest, Setup, benchmark, diff_layers, op_profile, report

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
MODELS = ROOT / "docs" / "demo" / "models"


def made_page(path: Path) -> None:
    """Write the report for the screenshots: a float network with ``add_sub``, and its int8 twin."""
    setup = Setup(f"{MODELS}/digits_float.tflite", delegates=("add_sub",))
    image = InputRequest([f"image={ROOT / 'docs' / 'demo' / 'photo.png'}"])
    layers = diff_layers(Setup(f"{MODELS}/digits_int8.tflite"), setup, inputs=image)
    report(setup, memory=True, benchmark=benchmark(setup), profile=op_profile(setup)).save(path)
    report(Setup(f"{MODELS}/digits_int8.tflite"), layers=layers).save(path.with_name("layers.html"))


def take(browser: Any, folder: Path, scheme: str) -> None:
    """Take the pictures in the colours of *scheme*: ``light`` or ``dark``."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1180, "height": 720})
    page = context.new_page()
    page.goto((folder / "report.html").as_uri())
    page.get_by_role("button", name="node 3, ADD").click()
    page.screenshot(path=FOLDER / f"report-{scheme}.png")
    page.locator("#memory svg").first.screenshot(path=FOLDER / f"report-memory-{scheme}.png")
    page.locator("#time svg").first.screenshot(path=FOLDER / f"report-time-{scheme}.png")
    page.goto((folder / "layers.html").as_uri())
    page.locator("#differences svg").first.screenshot(path=FOLDER / f"report-layers-{scheme}.png")
    context.close()


def main() -> None:
    """Write all pictures."""
    os.environ["DELEGRAPH_DEFAULT_DELEGATES"] = ""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with TemporaryDirectory() as name, sync_playwright() as driver:
        made_page(Path(name, "report.html"))
        browser = driver.chromium.launch(executable_path=program)
        for scheme in ("light", "dark"):
            take(browser, Path(name), scheme)
        browser.close()


if __name__ == "__main__":
    main()
