"""What of a job on Ray shows without it: an actor, and what is said where it is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Predictor
from delegraph.errors import ArgumentError
from delegraph.scale.ray import PredictorActor, checkpoint_config, predict

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"


def test_an_actor_computes_batches() -> None:
    predictor = Predictor(DIGITS)
    actor = PredictorActor(predictor, predictor.fingerprint())
    image = np.zeros((3, 8, 8, 1), np.int8)
    image.flags.writeable = False  # as Ray's are
    batch = actor({"id": np.arange(3), "image": image})
    np.testing.assert_array_equal(batch["digit"], predictor({"image": image})["digit"])
    assert batch["id"].tolist() == [0, 1, 2]


def test_an_actor_of_another_predictor_is_refused() -> None:
    fingerprint = Predictor(DIGITS).fingerprint()
    with pytest.raises(ArgumentError, match=r"is \w+ on this node, expected " + fingerprint):
        PredictorActor(Predictor(DIGITS, batching="rows"), fingerprint)


def test_a_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset: Any = None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for call in (
        lambda: predict(dataset, Predictor(DIGITS)),
        lambda: checkpoint_config(Predictor(DIGITS), "id", "/shared/done"),
    ):
        with pytest.raises(ArgumentError, match=r"needs ray .*pip install 'delegraph\[ray\]'"):
            call()
