"""Accepts flags of the official tools, such as ``--num_runs=5``, for Delegraph's options.

They help users of ``benchmark_model``, ``litert-benchmark``, ``inference_diff`` and the official
evaluation tools. Help does not list them.

Source:
    tflite/tools/benchmark/benchmark_tflite_model.cc, tflite/tools/evaluation/tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import click

Words = Callable[[str], list[str]]
"""Function from a flag's value to the words of Delegraph's command line with the same meaning."""

_YES, _NO = ("true", "1"), ("false", "0")


def own_words(command: str, arguments: Sequence[str]) -> list[str]:
    """Return *arguments* with the official tools' flags replaced by Delegraph's options.

    >>> own_words("benchmark", ["--graph=m.tflite", "--num_runs=5", "--dry_run", "--json"])
    ['m.tflite', '--runs', '5', '--dry-run', '--json']

    Args:
        command: name of the command.
        arguments: words after the name, as typed.

    Raises:
        UsageError: a flag has no value, or a value that it cannot have.
    """
    flags = _FLAGS.get(command, {})
    found: list[str] = []
    rest = list(arguments)
    delegate = _Delegate()
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        if word == "--":
            return [*found, *delegate.words(), word, *rest]
        if delegate.takes(flag):
            delegate.take(flag, _value(flag, equals, value, rest))
        elif flag in _SWITCHES and flag in flags:
            found += flags[flag](_switched(flag, value if equals else "true"))
        elif flag in flags:
            found += flags[flag](_value(flag, equals, value, rest))
        else:
            found.append(word)
    return [*found, *delegate.words()]


def _value(flag: str, equals: str, value: str, rest: list[str]) -> str:
    if equals:
        return value
    if not rest:
        raise click.UsageError(f"{flag} needs a value, as in {flag}=VALUE")
    return rest.pop(0)


def _switched(flag: str, value: str) -> str:
    if value.lower() not in (*_YES, *_NO):
        raise click.UsageError(f"{flag}={value}: expected true or false")
    return "true" if value.lower() in _YES else "false"


class _Delegate:
    """Two flags for a compiled delegate, which together become one ``-d``."""

    _PATH, _OPTIONS = "--external_delegate_path", "--external_delegate_options"

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def takes(self, flag: str) -> bool:
        return flag in (self._PATH, self._OPTIONS)

    def take(self, flag: str, value: str) -> None:
        self._given[flag] = value

    def words(self) -> list[str]:
        if not self._given:
            return []
        if self._PATH not in self._given:
            raise click.UsageError(f"{self._OPTIONS} needs {self._PATH}")
        pairs = [pair for pair in self._given.get(self._OPTIONS, "").split(";") if pair]
        options = ",".join(pair.replace(":", "=", 1) for pair in pairs)
        return ["-d", self._given[self._PATH] + (f":{options}" if options else "")]


def _as(option: str) -> Words:
    """Return a function that passes an official flag's value to the option *option*."""
    return lambda value: [option, value]


def _unless_negative(option: str) -> Words:
    """Return a function that passes an official flag's non-negative value to *option*.

    A negative value means the default, so that no option is given.
    """
    return lambda value: [] if value.startswith("-") else [option, value]


def _if_true(*words: str) -> Words:
    return lambda value: list(words) if value == "true" else []


def _xnnpack(value: str) -> list[str]:
    """Return the option for the runtime with XNNPACK, or the option for no default delegates."""
    return ["--runtime", "litert"] if value == "true" else ["--no-default-delegates"]


def _for_phones(flag: str) -> Words:
    """Return a function that raises an error if a delegate for phones is wanted."""

    def words(value: str) -> list[str]:
        if value == "true":
            raise click.UsageError(f"{flag} is for phones; -d PATH takes any compiled delegate")
        return []

    return words


def _model(value: str) -> list[str]:
    return [value]


def _ranges(value: str) -> list[str]:
    """Split ``name,low,high:name,low,high`` into one option ``--input-range`` for each input."""
    words: list[str] = []
    for part in value.split(":"):
        name, _, numbers = part.partition(",")
        words += ["--input-range", f"{name}={numbers}"]
    return words


_SETUP: Mapping[str, Words] = {
    "--graph": _model,
    "--model_file": _model,
    "--num_threads": _unless_negative("--threads"),
    "--num_interpreter_threads": _unless_negative("--threads"),
    "--require_full_delegation": _if_true("--require", "full"),
    "--use_xnnpack": _xnnpack,
    "--use_gpu": _for_phones("--use_gpu"),
    "--use_nnapi": _for_phones("--use_nnapi"),
    "--use_hexagon": _for_phones("--use_hexagon"),
    "--use_coreml": _for_phones("--use_coreml"),
}

_RUNS: Mapping[str, Words] = {
    "--num_runs": _as("--runs"),
    "--min_secs": _as("--min-seconds"),
    "--max_secs": _as("--max-seconds"),
    "--warmup_runs": _as("--warmup-runs"),
    "--warmup_min_secs": _as("--warmup-seconds"),
    "--run_delay": _unless_negative("--delay"),
    "--run_frequency": _unless_negative("--frequency"),
    "--dry_run": _if_true("--dry-run"),
    "--benchmark_name": _as("--name"),
    "--signature_to_run_for": _as("--signature"),
    "--input_layer_value_range": _ranges,
    "--enable_op_profiling": _if_true("--op-profile"),
    "--op_profiling_output_file": _as("--op-profile-csv"),
    "--profiling_output_csv_file": _as("--op-profile-csv"),
    "--result_json": _as("--save"),
}

_FLAGS: Mapping[str, Mapping[str, Words]] = {
    "benchmark": {**_SETUP, **_RUNS},
    "diff": {
        **_SETUP,
        "--num_runs": _as("--runs"),
        "--warmup_runs": _as("--warmup"),
        "--signature_to_run_for": _as("--signature"),
        "--input_layer_value_range": _ranges,
    },
    "evaluate": {
        **_SETUP,
        "--num_images": _as("--num-images"),
        "--warmup_runs": _as("--warmup-runs"),
        "--ground_truth_images_path": _as("--images"),
        "--ground_truth_labels": _as("--truth"),
        "--ground_truth_proto": _as("--truth"),
        "--model_output_labels": _as("--labels"),
        "--denylist_file_path": _as("--denylist"),
    },
}
"""Mapping from a command to its official flags, and from each flag to its words."""

_SWITCHES = frozenset({
    "--dry_run", "--enable_op_profiling", "--require_full_delegation", "--use_coreml", "--use_gpu",
    "--use_hexagon", "--use_nnapi", "--use_xnnpack",
})  # fmt: skip
"""Flags that are true or false; without a value they are true."""
