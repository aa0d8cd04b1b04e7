"""Names of set-ups in tables."""

from __future__ import annotations

from collections.abc import Sequence


def short_names(names: Sequence[str]) -> list[str]:
    """Names of set-ups without the model's name, if all set-ups have the same model.

    >>> short_names(["m.tflite", "m.tflite, litert, 2 threads", "m.tflite, no delegates"])
    ['as by default', 'litert, 2 threads', 'no delegates']
    >>> short_names(["m.tflite", "n.tflite"])
    ['m.tflite', 'n.tflite']

    Args:
        names: texts of the set-ups, which begin with the model's name and a comma.
    """
    parts = [name.partition(", ") for name in names]
    if len({model for model, _, _ in parts}) > 1:
        return list(names)
    return [options or "as by default" for _, _, options in parts]
