"""Builds the command line that repeats a comparison."""

from __future__ import annotations

import shlex
from dataclasses import replace

from delegraph.delegation.tolerance import Tolerance
from delegraph.tools.differing.difference import own_kernels
from delegraph.tools.differing.tolerances import Tolerances
from delegraph.tools.setup import Setup

_VALUES = ("threads", "timeout", "time_limit", "memory_limit", "table_limit", "depth_limit")
_CHOICES = {
    "runtime": "delegraph",
    "numerics": "builtin",
    "partition_policy": "largest",
    "on_failure": None,
    "isolate": None,
}
"""Attributes of a set-up that are a choice of words, with their default values."""


def diff_command(
    setup: Setup,
    model: str,
    reference: Setup,
    *,
    inputs: str,
    rules: str = "",
    tolerance: Tolerances | None,
    signature: str | None = None,
) -> str:
    """Return the command line that compares a model in two set-ups.

    A delegate object cannot be written as an option, so its type in angle brackets replaces it.

    Args:
        setup: the tested set-up.
        model: path of the model, instead of the model in the set-ups.
        reference: the set-up with right results.
        inputs: path of the inputs.
        rules: path of the rules, instead of the rules in the set-up; empty for none.
        tolerance: tolerance of the outputs; None means the numerics profile.
        signature: name of the signature to call; None means the whole model.
    """
    words = ["delegraph", "diff", model, *setup_words(setup)]
    words += ["--rules", rules] if rules else []
    words += _reference_words(setup, reference)
    words += ["-i", inputs]
    words += [word for text in _tolerance_words(tolerance) for word in ("--tolerance", text)]
    words += ["--signature", signature] if signature is not None else []
    return shlex.join(words)


def layers_command(setup: Setup, reference: Setup, signature: str | None = None) -> str:
    """Return the command line that shows which node of a model adds an error, in two set-ups."""
    words = ["delegraph", "diff", setup.model, *setup_words(setup)]
    words += _reference_words(setup, reference)
    words += ["--signature", signature] if signature is not None else []
    return shlex.join([*words, "--layers"])


def _reference_words(setup: Setup, reference: Setup) -> list[str]:
    words: list[str] = []
    if reference != own_kernels(setup):
        other = [] if reference.model == setup.model else [reference.model]
        if reference.runtime == setup.runtime == "delegraph":
            runtime = []
        else:
            runtime = ["--runtime", reference.runtime]
        given: list[str] = []
        if not (reference.delegates or reference.delegate_files):
            given = ["-d", "default" if reference.delegates is None else "none"]
        alike = replace(reference, runtime="delegraph")
        words += ["--reference", shlex.join([*other, *runtime, *given, *setup_words(alike)])]
    return words


def setup_words(setup: Setup) -> list[str]:
    """Return the command line options of *setup*, without the model and its placement rules.

    Callers add both, since they may be other files than those of the set-up.
    """
    words: list[str] = []
    for delegate in setup.delegates or ():
        words += ["-d", delegate if isinstance(delegate, str) else f"<{type(delegate).__name__}>"]
    for file in setup.delegate_files:
        words += ["--delegate-file", file]
    for name, default in _CHOICES.items():
        if (value := getattr(setup, name)) != default:
            words += [_option(name), value]
    for name in _VALUES:
        if (value := getattr(setup, name)) is not None:
            words += [_option(name), str(value)]
    words += ["--validate"] * setup.validate
    words += ["--no-default-delegates"] * (not setup.use_default_delegates)
    return words


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _tolerance_words(tolerance: Tolerances | None) -> list[str]:
    by_name = {"": tolerance} if isinstance(tolerance, Tolerance) else tolerance or {}
    return [
        (f"{name}=" if name else "")
        + _number(t.absolute)
        + (f",{_number(t.relative)}" if t.relative else "")
        for name, t in by_name.items()
    ]


def _number(value: float) -> str:
    """Return *value* as text with all its digits, because a rounded tolerance may hide a fault."""
    return repr(float(value)).removesuffix(".0")
