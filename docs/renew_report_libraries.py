"""Bundle what the page of ``delegraph report`` uses of d3, with the licences of all that is in it.

    python docs/renew_report_libraries.py

Needs npm. To take a newer version, change it here, run this, and look at the pages of
``tests/tools/reporting``. The bundle holds what :data:`NAMES` need and no more: a third of d3.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

VERSION = "7.9.2"
BUNDLER = "esbuild@0.28.2"
NAMES = (
    "axisBottom axisLeft curveStepAfter line path scaleLinear scaleLog select ticks "
    "zoom zoomIdentity zoomTransform"
)
"""Names of d3 that the scripts of the page use."""

ASSETS = Path(__file__).parents[1] / "core" / "delegraph" / "tools" / "reporting" / "assets"


def main() -> None:
    """Write the bundle, its licences and ``libraries.json``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = ["npm", "install", "--silent", "--ignore-scripts", f"d3@{VERSION}", BUNDLER]
        subprocess.run(words, cwd=folder, check=True)
        packages = bundle(folder)
        told = {path: json.loads((path / "package.json").read_text()) for path in packages}
        texts = [
            f"{p['name']} {p['version']} ({p['license']})\n\n{licence_of(path).strip()}\n"
            for path, p in told.items()
        ]
    (ASSETS / "d3" / "LICENSE").write_text(("\n" + "-" * 78 + "\n\n").join(texts))
    library = {
        "version": VERSION,
        "file": "d3.min.js",
        "sha256": sha256((ASSETS / "d3" / "d3.min.js").read_bytes()).hexdigest(),
        "source": "https://www.npmjs.com/package/d3",
        "packages": {p["name"]: p["license"] for p in told.values()},
    }
    (ASSETS / "libraries.json").write_text(json.dumps({"d3": library}, indent=2) + "\n")


def bundle(folder: Path) -> list[Path]:
    """Bundle D3 into ``assets/d3/d3.min.js``; return the folders of the bundled packages."""
    (folder / "names.js").write_text(f'export {{ {", ".join(NAMES.split())} }} from "d3";\n')
    options = ["--bundle", "--minify", "--format=iife", "--global-name=d3", "--legal-comments=none"]
    target = [f"--outfile={ASSETS / 'd3' / 'd3.min.js'}", "--metafile=what.json"]
    words = ["node_modules/.bin/esbuild", "names.js", *options, *target]
    subprocess.run(words, cwd=folder, check=True)
    (output,) = json.loads((folder / "what.json").read_text())["outputs"].values()
    used = [path for path, part in output["inputs"].items() if part["bytesInOutput"]]
    parts = [Path(path).parts for path in used if path.startswith("node_modules/")]
    return [folder / "node_modules" / name for name in sorted({part[1] for part in parts})]


def licence_of(package: Path) -> str:
    """Return a package's licence text."""
    for path in sorted(package.iterdir()):
        if path.name.lower().startswith(("license", "licence", "unlicense", "copying")):
            return path.read_text(encoding="utf-8")
    raise SystemExit(f"{package.name} has no licence text")


if __name__ == "__main__":
    main()
