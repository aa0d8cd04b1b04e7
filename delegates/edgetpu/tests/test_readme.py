"""What the README says of operators is what the compiler does."""

from __future__ import annotations

import re
from pathlib import Path

from delegraph_edgetpu.operator_rules import RULES

README = Path(__file__).parents[1] / "README.md"


def test_table_of_operators_is_that_of_the_rules() -> None:
    text = README.read_text(encoding="utf-8")
    section = text[text.index("### What maps") : text.index("### The executable")]
    rows = re.findall(r"^\| (`[A-Z].*?) \|.*\| (\d+) \|$", section, re.M)
    said = {name: int(runtime) for names, runtime in rows for name in re.findall(r"`(.*?)`", names)}
    assert said == {name: rule.runtime for name, rule in RULES.items() if name != "DEQUANTIZE"}
