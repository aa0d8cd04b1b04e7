"""Tests that ``pytest --pyargs delegraph.testing --delegate NAME`` runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delegraph.testing.conformance.subject import Subject, installed_subject
from delegraph.testing.delegate_conformance import DelegateConformance, failures_folder


class TestInstalledDelegate(DelegateConformance):
    """The kit for each delegate in ``--delegate`` options."""

    def subjects(self, config: pytest.Config) -> list[Subject]:
        """Return the subjects for the delegates in ``--delegate`` options."""
        names = config.getoption("delegate", default=None)
        if not names:
            raise pytest.UsageError("say which delegate to test: --delegate NAME[:KEY=VALUE,...]")
        folder = failures_folder(config)
        return [replace(installed_subject(name), folder=folder) for name in names]
