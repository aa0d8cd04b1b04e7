"""Which tests ``make check`` runs for a change."""

from __future__ import annotations

import pytest

from changed_tests import ROOT, mirrored_tests


@pytest.mark.parametrize(
    ("path", "some"),
    [
        ("core/delegraph/kernels/conv3d.py", "tests/kernels/test_conv3d.py"),
        ("core/delegraph/runtime/delegates/node_facts.py", "tests/runtime/delegates"),
        ("tests/kernels/test_pad.py", "tests/kernels/test_pad.py"),
        ("plugins_example/src/delegraph_example/sin.py", None),
        ("docs/cli.md", "tests/test_docs.py"),
        ("Makefile", None),
    ],
)
def test_a_change_leads_to_the_tests_of_the_same_name(path: str, some: str | None) -> None:
    found = mirrored_tests(path, ROOT)
    assert some in found if some else not found
