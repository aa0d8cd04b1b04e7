"""Delegates under test: which one an address means."""

from __future__ import annotations

from pathlib import Path

from delegraph.testing.conformance.subject import installed_subject

FILE = """
from delegraph import Capabilities, Claim, SimpleDelegateInterface

class Mine(SimpleDelegateInterface):
    def name(self):
        return "mine"

    def capabilities(self):
        return Capabilities([Claim("SIN", "FLOAT32")])

    def is_node_supported_by_delegate(self, registration, node, context):
        return self.capabilities().check(registration, node, context)

    def create_delegate_kernel_interface(self):
        raise AssertionError("no node is computed")
"""


def test_a_python_file_is_a_delegate_under_test(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    subject = installed_subject(str(path))
    assert (subject.name, subject.operators) == ("mine", ("SIN",))
    assert subject.make() is not subject.make()
