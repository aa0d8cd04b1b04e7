"""Fetch the libraries that the page of ``delegraph report`` draws with, with their licences.

    python docs/renew_report_libraries.py

Needs npm. To take a newer version, change it here, run this, and look at the pages of
``tests/tools/reporting``. What a bundle holds of other packages is licensed by these, so the texts
of all of them are kept beside it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

LIBRARIES = {"d3": ("7.9.2", "dist/d3.min.js"), "d3-dag": ("1.2.2", "dist/d3-dag.iife.min.js")}
ASSETS = Path(__file__).parents[1] / "core" / "delegraph" / "tools" / "reporting" / "assets"


def main() -> None:
    """Fetch every library into its folder, and write what they are to ``libraries.json``."""
    found = {}
    for name, (version, bundle) in LIBRARIES.items():
        with tempfile.TemporaryDirectory() as folder:
            words = ["npm", "install", "--silent", "--ignore-scripts", f"{name}@{version}"]
            subprocess.run(words, cwd=folder, check=True)
            found[name] = keep(name, Path(folder) / "node_modules", bundle)
    (ASSETS / "libraries.json").write_text(json.dumps(found, indent=2) + "\n")


def keep(name: str, modules: Path, bundle: str) -> dict[str, object]:
    """Copy a bundle and the licences of all that is in it; return what they are."""
    folder = ASSETS / name
    folder.mkdir(exist_ok=True)
    file = folder / Path(bundle).name
    shutil.copyfile(modules / name / bundle, file)
    packages = [path.parent for path in sorted(modules.rglob("package.json")) if is_package(path)]
    told = [json.loads((package / "package.json").read_text()) for package in packages]
    texts = [
        f"{p['name']} {p['version']} ({p['license']})\n\n{licence_of(folder).strip()}\n"
        for p, folder in zip(told, packages, strict=True)
    ]
    (folder / "LICENSE").write_text(("\n" + "-" * 78 + "\n\n").join(texts))
    return {
        "version": next(p["version"] for p in told if p["name"] == name),
        "file": file.name,
        "sha256": sha256(file.read_bytes()).hexdigest(),
        "source": f"https://www.npmjs.com/package/{name}",
        "packages": {p["name"]: p["license"] for p in told},
    }


def is_package(path: Path) -> bool:
    """Return whether *path* describes a package: some have more such files within."""
    return path.parent.parent.name == "node_modules" or path.parent.parent.name.startswith("@")


def licence_of(package: Path) -> str:
    """Return a package's licence text."""
    for path in sorted(package.iterdir()):
        if path.name.lower().startswith(("license", "licence", "unlicense", "copying")):
            return path.read_text(encoding="utf-8")
    raise SystemExit(f"{package.name} has no licence text")


if __name__ == "__main__":
    main()
