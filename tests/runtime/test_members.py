from __future__ import annotations

from pathlib import Path

from delegraph import Interpreter

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"


def test_an_interpreter_shows_tensors_and_placement(sines: Path) -> None:
    with Interpreter(sines, delegates=["sin"]) as interpreter:
        shown = interpreter._repr_html_()
        assert shown.count("<table>") == 2
        assert "sin takes 2 in 2 partitions" in shown
        assert ">[1]</td>" in shown
    assert "that is closed" in interpreter._repr_html_()


def test_quantization_is_shown() -> None:
    shown = Interpreter(DIGITS)._repr_html_()
    assert ">int8</td>" in shown
    assert ">[-1, 8, 8, 1]</td>" in shown or ">[1, 8, 8, 1]</td>" in shown
    assert ">-128</td>" in shown


def test_a_profile_shows_the_nodes_that_take_most(sines: Path) -> None:
    with Interpreter(sines, delegates=["sin"]) as interpreter:
        interpreter.allocate_tensors()
        with interpreter.profile() as profile:
            interpreter.invoke()
            interpreter.invoke()
        shown = profile._repr_html_()
    assert "Profile of 10 events" in shown
    assert shown.count("<tr>") == 1 + 5
    assert ">MUL</td>" in shown
