"""What ``check_runner.py`` says to the process in which checks run, ``check_server.py``."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.testing.conformance.run_reports import Suspect


@dataclass(frozen=True)
class Outline:
    """Asks what a class of tests tests.

    Attributes:
        tests: the class, as ``file::class``.
    """

    tests: str


@dataclass(frozen=True)
class Run:
    """Asks for the reports of a test.

    Attributes:
        tests: its class, as ``file::class``.
        name: the test.
        next_name: the one that is run after it, if it is of the same class.
        deaths: how models have ended processes before, by their keys.
    """

    tests: str
    name: str
    next_name: str
    deaths: dict[str, str]


@dataclass(frozen=True)
class Judgement:
    """Asks whether a model that came out wrong does so in this process, too.

    Attributes:
        tests: the class of tests, as ``file::class``.
        suspect: the model.
    """

    tests: str
    suspect: Suspect
