from __future__ import annotations

from delegraph.delegation.delegate import DelegateFlags


def test_flags_are_the_numbers_of_tflite() -> None:
    """Source: TfLiteDelegateFlags, tflite/core/c/common.h."""
    assert {flag.name: flag.value for flag in DelegateFlags} == {
        "ALLOW_DYNAMIC_TENSORS": 1,
        "REQUIRE_PROPAGATED_SHAPES": 2,
        "PER_OPERATOR_PROFILING": 4,
        "HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE": 8,
    }
