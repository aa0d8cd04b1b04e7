"""Compiled models for the Edge TPU with checksums that are right and a partition that is not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

import numpy as np

from delegraph.schema import read_model, tables, write_model
from delegraph.testing.operator_case import OperatorCase
from fuzz.starting_models import StartingModel

sys.path.append(str(Path(__file__).parents[2] / "delegates" / "edgetpu" / "tests"))

TYPES = {"INT8", "UINT8", "INT16", "INT32"}


@dataclass(frozen=True, eq=False)
class CompiledModel(StartingModel):
    """A model of one ``edgetpu-custom-op``, whose inner partition is damaged.

    Attributes:
        partition: the model that the operator holds.
    """

    partition: bytes = b""

    @cached_property
    def records(self) -> tables.Model:
        return read_model(np.frombuffer(self.partition, np.uint8))

    def file_of(self, records: tables.Model, chance: Random) -> bytes:
        """Return a file with valid checksums; every second file declares the sound tensors."""
        from compiled_models import compiled_records, executable_of
        from delegraph_edgetpu.custom_options import write_custom_options

        inner = super().file_of(records, chance)
        options = write_custom_options(executable_of(inner))
        outside = self.partition if chance.random() < 0.5 else inner
        try:
            return write_model(compiled_records(outside, custom_options=options))
        except (TypeError, ValueError, IndexError):  # tensors that are not there
            return write_model(compiled_records(self.partition, custom_options=options))


def compiled_models(cases: Sequence[OperatorCase]) -> list[StartingModel]:
    """Return compiled models of those cases that have 8-bit types."""
    from compiled_models import compiled

    found: list[StartingModel] = []
    for case in cases:
        if {"INT8", "UINT8"} & set(case.types()) <= set(case.types()) <= TYPES:
            partition = write_model(case.records)
            name = f"edgetpu:{case.op}"
            found.append(CompiledModel(name, compiled(partition), case.steps, partition))
    return found
