"""Where a test tool has no wheel for a Python, its tests are skipped, and no others."""

from __future__ import annotations

import pytest

import absent_tools
from absent_tools import absent_modules
from install_tools import MISSING, requirements

pytest_plugins = ("pytester",)


def test_only_what_imports_an_absent_tool_is_skipped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_tools, "absent_modules", lambda: frozenset({"no_wheel"}))
    pytester.makepyfile(
        test_module="import no_wheel.part\ndef test(): pass",
        test_inside="def test(): import no_wheel",
        test_advice="def test(): assert not 'first: pip install no-wheel'",
        test_quoted="""def test(): assert not ["it's", "No module named 'no_wheel'"]""",
        test_another="def test(): import no_wheels",
        test_other_advice="def test(): assert not 'pip install no-wheel-either'",
    )
    result = pytester.runpytest("-p", "absent_tools", "-rs")
    result.assert_outcomes(skipped=4, failed=2)
    result.stdout.fnmatch_lines(["SKIPPED*no_wheel has no wheel for this Python"])


def test_here_are_all_of_them_or_they_are_named() -> None:
    assert not absent_modules() & {"pytest", "hypothesis", "xdist"}


def test_extras_of_the_core_are_tried_one_by_one() -> None:
    names = list(requirements())
    assert [name for name in names if name.startswith("delegraph")] == []
    assert {"faster-coco-eval>=1.8", "pyarrow>=17", "ai-edge-litert==2.3.0"} <= set(names)


def test_what_has_no_wheel_is_read_from_what_pip_says() -> None:
    said = (
        "ERROR: Could not find a version that satisfies the requirement ai-edge-litert==2.3.0 "
        "(from versions: none)\nERROR: No matching distribution found for ai-edge-litert==2.3.0\n"
    )
    found = MISSING.search(said)
    assert found is not None
    assert found[1] == "ai-edge-litert"
