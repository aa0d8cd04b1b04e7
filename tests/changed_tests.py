"""Prints the test files of what changed since a branch: ``make check`` runs them.

Tests mirror the path of a module: those of ``core/delegraph/kernels/conv.py`` are
``tests/kernels/test_conv*.py``. A module without tests of its name is tested by its package's:
``runtime/delegates/node_facts.py`` by ``tests/runtime/delegates``. A delegate's tests lie in one
folder, so a module without tests of its name is tested by those that mention its operator: of
``kernels/softmax.py`` by the files with the word ``softmax``; by the whole folder if none has it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STRUCTURE = ("tests/test_architecture.py", "tests/test_public_imports.py")
"""Quick tests of where files lie and what they import."""


def changed_files(base: str) -> list[str]:
    """Paths of files that differ from where this branch left *base*, untracked ones included."""
    fork = _git("merge-base", base, "HEAD")[0]
    committed = _git("diff", "--name-only", "--diff-filter=d", fork)
    return sorted({*committed, *_git("ls-files", "--others", "--exclude-standard")})


def mirrored_tests(path: str, root: Path) -> list[str]:
    """Test files, or a folder of them, for a changed file; none for one that has none.

    Args:
        path: of the file, from *root* on, with slashes.
        root: the checkout.
    """
    file = Path(path)
    if file.suffix != ".py":
        return ["tests/test_docs.py"] if file.suffix == ".md" and file.parts[0] == "docs" else []
    if "tests" in file.parts:
        return [path] if file.stem.startswith("test_") else []
    folder = _test_folder(file)
    if folder is None or not (root / folder).is_dir():
        return []
    words = file.stem.split("_")
    for count in range(len(words), 0, -1):
        found = sorted((root / folder).glob(f"test_{'_'.join(words[:count])}*.py"))
        if found:
            return [p.relative_to(root).as_posix() for p in found]
    if file.parts[0] == "delegates":
        return _mentioning(file.stem, folder, root) or [folder.as_posix()]
    return [folder.as_posix()] if file.parts[0] == "core" and len(folder.parts) > 1 else []


def _mentioning(name: str, folder: Path, root: Path) -> list[str]:
    """Test files of *folder* with a module's name, its type such as ``_f32`` left out.

    The conformance kit, which takes minutes, is not among them.
    """
    word = re.sub(r"_(f|int)\d+$", "", name)
    files = sorted({*(root / folder).glob("test_*.py")} - {root / folder / "test_conformance.py"})
    return [p.relative_to(root).as_posix() for p in files if word in p.read_text().lower()]


def _test_folder(file: Path) -> Path | None:
    """Folder with the tests of a module; None for files outside of packages."""
    match file.parts:
        case ("core", "delegraph", *folders, _):
            return Path("tests", *folders)
        case ("delegates", name, "src", *_):
            return Path("delegates", name, "tests")
        case ("plugins_example", "src", *_):
            return Path("plugins_example", "tests")
    return None


def _git(*words: str) -> list[str]:
    """Lines that a git command prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def main(base: str) -> None:
    """Print the test files, one a line, each once."""
    found = {test for path in changed_files(base) for test in mirrored_tests(path, ROOT)}
    print("\n".join(sorted({*STRUCTURE, *found})))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "main")
