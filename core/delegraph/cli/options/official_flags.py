"""Accepts flags of the official tools, such as ``--num_runs=5``, for Delegraph's options.

They help users of ``benchmark_model``, ``litert-benchmark``, ``inference_diff`` and the official
evaluation tools. Help does not list them.

Source:
    tflite/tools/benchmark/benchmark_tflite_model.cc, tflite/tools/evaluation/tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import click

from delegraph.quantities import plural

Words = Callable[[str], list[str]]
"""Function from a flag's value to the words of Delegraph's command line with the same meaning."""

_WITH_SHAPES = ("benchmark", "diff")
"""Commands with ``--input-shape``."""

_YES, _NO = ("true", "1"), ("false", "0")


def own_words(command: str, arguments: Sequence[str]) -> list[str]:
    """Return *arguments* with the official tools' flags replaced by Delegraph's options.

    >>> own_words("benchmark", ["--graph=m.tflite", "--num_runs=5", "--dry_run", "--json"])
    ['m.tflite', '--runs', '5', '--dry-run', '--json']

    Raises:
        UsageError: a flag has no value, or a value that it cannot have.
    """
    flags = _FLAGS.get(command, {})
    found: list[str] = []
    rest = list(arguments)
    pairs = {_DELEGATE: _delegate, **({_SHAPES: _shapes} if command in _WITH_SHAPES else {})}
    given: dict[str, str] = {}  # flags of pairs, which together become one option
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        if word == "--":
            rest.insert(0, word)
            break
        if any(flag in pair for pair in pairs):
            given[flag] = _value(flag, equals, value, rest)
        elif flag in _SWITCHES and flag in flags:
            found += flags[flag](_switched(flag, value if equals else "true"))
        elif flag in flags:
            found += flags[flag](_value(flag, equals, value, rest))
        else:
            found.append(word)
    for pair, words in pairs.items():
        found += words(given) if given.keys() & {*pair} else []
    return found + rest


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


_DELEGATE = ("--external_delegate_path", "--external_delegate_options")
_SHAPES = ("--input_layer", "--input_layer_shape")


def _delegate(given: Mapping[str, str]) -> list[str]:
    """Return ``-d`` for the path of a compiled delegate and its options."""
    path, options = _DELEGATE
    named = _needed(given, path, options)
    pairs = [pair for pair in given.get(options, "").split(";") if pair]
    text = ",".join(pair.replace(":", "=", 1) for pair in pairs)
    return ["-d", named + (f":{text}" if text else "")]


def _shapes(given: Mapping[str, str]) -> list[str]:
    """Return ``--input-shape`` for each name and shape of ``a,b`` and ``1,2:3``."""
    layer, shape = _SHAPES
    names = _needed(given, layer, shape).split(",")
    shapes = _needed(given, shape, layer).split(":")
    if len(names) != len(shapes):
        raise click.UsageError(
            f"{layer} has {plural(len(names), 'name')} and {shape} "
            f"{plural(len(shapes), 'shape')}, expected one shape for each name"
        )
    pairs = zip(names, shapes, strict=True)
    return [word for name, dims in pairs for word in ("--input-shape", f"{name}={dims}")]


def _needed(given: Mapping[str, str], flag: str, by: str) -> str:
    if flag not in given:
        raise click.UsageError(f"{by} needs {flag}")
    return given[flag]


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


def _answers(texts: Mapping[str, str]) -> dict[str, Words]:
    """Return functions that refuse flags, each with what to do instead.

    The value false of a flag that is true or false is accepted, as nothing is asked.
    """

    def answer(flag: str, text: str) -> Words:
        def words(value: str) -> list[str]:
            if flag in _SWITCHES and value == "false":
                return []
            raise click.UsageError(f"{flag}: {text}")

        return words

    return {flag: answer(flag, text) for flag, text in texts.items()}


def _model(value: str) -> list[str]:
    return [value]


def _ranges(value: str) -> list[str]:
    """Split ``name,low,high:name,low,high`` into one option ``--input-range`` for each input."""
    words: list[str] = []
    for part in value.split(":"):
        name, _, numbers = part.partition(",")
        words += ["--input-range", f"{name}={numbers}"]
    return words


_SWITCHES = frozenset({
    "--allow_dynamic_profiling_buffer_increase", "--allow_fp16", "--disable_delegate_clustering",
    "--dry_run", "--enable_builtin_cast_constant_cache", "--enable_op_profiling",
    "--export_model_runtime_info", "--list_signatures", "--optimize_memory_for_large_tensors",
    "--print_postinvoke_state", "--print_preinvoke_state", "--release_dynamic_tensors",
    "--report_peak_memory_footprint", "--require_full_delegation", "--use_caching", "--use_coreml",
    "--use_gpu", "--use_hexagon", "--use_nnapi", "--use_xnnpack", "--verbose",
    "--xnnpack_force_fp16",
})  # fmt: skip
"""Flags that are true or false; without a value they are true."""

_NO_ARGUMENT = "Python's interpreters have no argument for"
_OF_A_DELEGATE = "it is an option of the delegates that have it, -d NAME:KEY=VALUE"

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
    **_answers(
        {
            "--allow_fp16": "delegates may have an option for it, -d NAME:KEY=VALUE",
            "--use_caching": f"{_NO_ARGUMENT} it",
            "--release_dynamic_tensors": f"{_NO_ARGUMENT} it",
            "--optimize_memory_for_large_tensors": f"{_NO_ARGUMENT} it",
            "--enable_builtin_cast_constant_cache": f"{_NO_ARGUMENT} it",
            "--xnnpack_force_fp16": f"{_NO_ARGUMENT} it",
            "--disable_delegate_clustering": "in Python alone: "
            "Interpreter(experimental_disable_delegate_clustering=True)",
            "--max_delegated_partitions": _OF_A_DELEGATE,
            "--min_nodes_per_partition": _OF_A_DELEGATE,
            "--delegate_serialize_dir": "delegates store compiled data by themselves",
            "--delegate_serialize_token": "delegates store compiled data by themselves",
            "--first_delegate_node_index": "--rules FILE pins nodes of any kind",
            "--last_delegate_node_index": "--rules FILE pins nodes of any kind",
            "--stable_delegate_settings_file": "-d PATH takes a compiled delegate",
        }
    ),
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
    "--verbose": _if_true("--verbose"),
    "--report_peak_memory_footprint": _if_true(),  # it is always there
    **_answers(
        {
            "--memory_footprint_check_interval_ms": "memory is told without a thread that asks",
            "--output_prefix": "it is for lines of a log; --name NAME is in the result",
            "--list_signatures": "'delegraph inspect MODEL' lists them",
            **dict.fromkeys(
                (
                    *("--print_preinvoke_state", "--print_postinvoke_state"),
                    *("--tensor_name_display_length", "--tensor_type_display_length"),
                    "--alloc_type_display_length",
                ),
                "'delegraph memory MODEL' and 'delegraph inspect MODEL' show tensors",
            ),
            "--output_filepath": "--save FILE.npz writes the last outputs by name",
            "--output_proto_filepath": "--save FILE.npz writes the last outputs by name",
            "--result_file_path": "--result-json FILE writes the figures, as 'official' too",
            "--gpu_invoke_loop_times": "it is for a special build",
            "--input_layer_value_files": "--input NAME=FILE takes .npy, .npz, pictures and sounds",
            "--op_profiling_output_mode": "--op-profile-csv FILE, --json or --trace FILE",
            "--max_profiling_buffer_entries": "no event is lost",
            "--allow_dynamic_profiling_buffer_increase": "no event is lost",
            "--export_model_runtime_info": "'delegraph explain MODEL --json' has it",
            "--model_runtime_info_output_file": "'delegraph explain MODEL --json' has it",
        }
    ),
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
