"""A second run is short where nothing has changed, and never otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import unchanged

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="Git is not installed")

COMMAND = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(' '.join(sys.argv[2:]))"


class Checkout:
    """A small checkout, and what its tests were called with."""

    def __init__(self, folder: Path) -> None:
        self.root, self.made = folder / "checkout", folder / "site-packages"
        self.record = folder / "tested"
        self._told = folder / "told"
        for path in (self.root / "pyproject.toml", self.root / "kept.py", self.made / "a.py"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("1")
        (self.root / ".gitignore").write_text("ignored\n")
        for words in (["init", "--quiet"], ["add", "."]):
            subprocess.run(["git", *words], cwd=self.root, check=True)

    def test(self, then: str = "") -> str:
        """Return the options of a run; the code *then* is a part of it."""
        words = [sys.executable, "-c", f"{COMMAND}\n{then}", str(self._told), "--sample", "7"]
        self.status = unchanged.main(self.record, words)
        return self._told.read_text()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    made = Checkout(tmp_path)
    digest = unchanged.digest
    monkeypatch.setattr(unchanged, "digest", lambda: digest(made.root, (made.made,)))
    for name in ("CI", "FRESH"):
        monkeypatch.delenv(name, raising=False)
    return made


WHOLE, PART = "--sample 7", "--sample 7 --part 4"

CHANGES: dict[str, Callable[[Checkout], object]] = {
    "tracked": lambda c: (c.root / "kept.py").write_text("2"),
    "untracked": lambda c: (c.root / "new.py").write_text("1"),
    "deleted": lambda c: (c.root / "kept.py").unlink(),
    "mode": lambda c: (c.root / "kept.py").chmod(0o755),
    "link": lambda c: (c.root / "link").symlink_to("kept.py"),
    "installed": lambda c: os.utime(c.made / "a.py", ns=(1, 1)),
    "package": lambda c: (c.made / "b.py").write_text("1"),
    "variable": lambda c: os.environ.update(DELEGRAPH_OF_THIS_TEST="1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_runs_the_whole_sample(
    checkout: Checkout, change: Callable[[Checkout], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELEGRAPH_OF_THIS_TEST", "0")
    assert [checkout.test() for _ in range(3)] == [WHOLE, PART, PART]
    change(checkout)
    assert [checkout.test() for _ in range(2)] == [WHOLE, PART]


def test_what_counts_for_nothing_changes_nothing(checkout: Checkout) -> None:
    checkout.test()
    (checkout.root / "ignored").write_text("1")
    (checkout.made / "__pycache__").mkdir()
    (checkout.made / "__pycache__" / "a.pyc").write_text("1")
    assert checkout.test() == PART


@pytest.mark.parametrize("end", ["sys.exit(1)", "import os; os.abort()"])
def test_a_run_that_fails_is_followed_by_whole_ones(checkout: Checkout, end: str) -> None:
    checkout.test()
    assert checkout.test(end) == PART
    assert checkout.status != 0
    assert checkout.test(end) == WHOLE
    assert checkout.test() == WHOLE
    assert checkout.status == 0


def test_a_change_while_tests_run_is_no_success_of_what_is_there_now(checkout: Checkout) -> None:
    checkout.test(f"pathlib.Path({str(checkout.root / 'kept.py')!r}).write_text('2')")
    assert checkout.test() == WHOLE


@pytest.mark.parametrize("name", ["CI", "FRESH"])
def test_users_and_ci_may_want_the_whole(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    checkout.test()
    monkeypatch.setenv(name, "1")
    assert checkout.test() == WHOLE


def test_without_git_nothing_is_known(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(checkout.root / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(checkout.root.parent))
    assert [checkout.test() for _ in range(2)] == [WHOLE, WHOLE]
    assert not checkout.record.exists()
