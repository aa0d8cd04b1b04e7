"""Which tests ``make check`` runs for a change."""

from __future__ import annotations

import pytest

from changed_tests import ROOT, mirrored_tests

NUMBA_CPU = "delegates/numba_cpu"


@pytest.mark.parametrize(
    ("path", "some"),
    [
        ("core/delegraph/kernels/conv3d.py", "tests/kernels/test_conv3d.py"),
        ("core/delegraph/runtime/delegates/node_facts.py", "tests/runtime/delegates"),
        ("tests/kernels/test_pad.py", "tests/kernels/test_pad.py"),
        (
            f"{NUMBA_CPU}/src/delegraph_numba_cpu/kernels/softmax.py",
            f"{NUMBA_CPU}/tests/test_rows_and_pools_int16.py",
        ),
        (f"{NUMBA_CPU}/src/delegraph_numba_cpu/codegen/vector_ir.py", f"{NUMBA_CPU}/tests"),
        ("plugins_example/src/delegraph_example/sin.py", None),
        ("docs/cli.md", "tests/test_docs.py"),
        ("Makefile", None),
    ],
)
def test_a_change_leads_to_the_tests_of_its_name(path: str, some: str | None) -> None:
    found = mirrored_tests(path, ROOT)
    assert some in found if some else not found
