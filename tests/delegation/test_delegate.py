from __future__ import annotations

from delegraph.delegation.delegate import DelegateFlags, DelegateParams


def test_equal_partitions_are_equal_in_any_context() -> None:
    first, second = (DelegateParams(None, (1,), (2,), (3,), object()) for _ in range(2))
    assert first == second
    assert "object" not in repr(first)


def test_flags_are_the_numbers_of_tflite() -> None:
    """Source: TfLiteDelegateFlags, tflite/core/c/common.h."""
    assert {flag.name: flag.value for flag in DelegateFlags if flag} == {
        "ALLOW_DYNAMIC_TENSORS": 1,
        "REQUIRE_PROPAGATED_SHAPES": 2,
        "PER_OPERATOR_PROFILING": 4,
        "HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE": 8,
    }
