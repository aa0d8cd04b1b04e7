from __future__ import annotations

from delegraph.cli.answers.setup_names import short_names


def test_only_a_name_that_all_set_ups_have_is_left_out() -> None:
    assert short_names(["m.tflite, sin", "m.tflite"]) == ["sin", "as by default"]
    names = ["m.tflite, no delegates", "n.tflite"]
    assert short_names(names) == names
