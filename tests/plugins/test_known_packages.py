from __future__ import annotations

import pytest

from delegraph.plugins.known_packages import package_for, package_for_delegate


@pytest.mark.parametrize(
    ("op", "package"),
    [
        ("FlexErf", "delegraph-flex"),
        ("edgetpu-custom-op", "delegraph-edgetpu"),
        ("MyOp", None),
        ("ReFlex", None),
    ],
)
def test_a_custom_op_leads_to_its_package(op: str, package: str | None) -> None:
    assert package_for(op) == package


def test_a_delegate_leads_to_its_package() -> None:
    assert package_for_delegate("sin") == "delegraph-example"
    assert package_for_delegate("mine") is None
