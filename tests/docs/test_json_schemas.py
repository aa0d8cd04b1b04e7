"""What commands print with ``--json`` is what docs/schemas says, and every key is described."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from delegraph.cli import delegraph as root
from delegraph.plugins import installed
from delegraph.testing import graph_model, run_command, tensor
from support.scripts import script

DOCS = Path(__file__).parents[2] / "docs"
AGAIN = "run `python docs/generate_json_schemas.py`, and look at what changed"


EXAMPLES = script("json_examples.py")  # which the script imports
SCRIPT = script("generate_json_schemas.py")
NEEDED = {"add_sub", "sin", "edgetpu", "flex", "numba_cpu"}

needs_plugins = pytest.mark.skipif(
    not {offer.spec.name for offer in installed().offers()} >= NEEDED,
    reason="a delegate of the examples is not installed",
)


def schema_of(name: str) -> Any:
    return json.loads((DOCS / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


def without_unknown_keys(schema: Any) -> Any:
    """Return a schema that refuses keys that it does not describe."""
    if isinstance(schema, list):
        return [without_unknown_keys(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: without_unknown_keys(value) for key, value in schema.items()}
    is_record = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    return closed | ({"additionalProperties": False} if is_record else {})


@needs_plugins
@pytest.mark.parametrize("name", EXAMPLES.EXAMPLES)
def test_a_command_prints_what_its_schema_says(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    judge = Draft202012Validator(without_unknown_keys(schema))
    with EXAMPLES.own_folder():
        for words in EXAMPLES.EXAMPLES[name]:
            printed = run_command(*words, "--json").json
            wrong = [f"{e.json_path}: {e.message[:200]}" for e in judge.iter_errors(printed)]
            assert not wrong, f"{name}: {wrong[0]}; {AGAIN}"


@pytest.mark.parametrize("model", [EXAMPLES.FLOAT, EXAMPLES.INT8, EXAMPLES.SINES])
def test_the_official_interpreter_is_explained_by_the_same_schema(model: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    printed = run_command("explain", model, "--runtime", "litert", "--json").json
    Draft202012Validator(schema_of("explain")).validate(printed)
    assert printed["hints"] == []
    assert printed["allocation_error"] is None


def test_sizes_known_only_while_invoking_are_null(tmp_path: Path) -> None:
    path = tmp_path / "open.tflite"
    indices = {"i": tensor((4,), "INT32")}
    nodes = [("UNIQUE", "x", "a i"), ("SIN", "a", "y")]
    path.write_bytes(graph_model(nodes, inputs="x", outputs="y", tensors=indices))
    printed = run_command("explain", path, "-d", "sin", "--json").json
    Draft202012Validator(schema_of("explain")).validate(printed)
    assert printed["totals"]["crossing_bytes"] is None


@pytest.mark.parametrize("name", ["run", "explain", "doctor"])
def test_an_error_is_what_every_schema_says(name: str) -> None:
    printed = run_command(name, "gone.tflite", "--json").json
    judge = Draft202012Validator(schema_of(name))
    assert judge.is_valid(printed)
    assert not judge.is_valid({})


def commands(command: click.Command, path: str = "") -> set[str]:
    """Return the words of every command that is no group."""
    if not isinstance(command, click.Group):
        return {path}
    context = click.Context(command)
    names = [*command.list_commands(context)]
    names += installed().commands() if command is root else []
    found = ((name, command.get_command(context, name)) for name in names)
    return {
        each
        for name, inner in found
        if inner is not None
        for each in commands(inner, f"{path} {name}".strip())
    }


@needs_plugins
def test_every_command_has_a_schema_or_a_reason() -> None:
    described = {*EXAMPLES.EXAMPLES, *(name.replace(" ", "-") for name in EXAMPLES.WITHOUT_EXAMPLE)}
    missing = {each for each in commands(root) if each.replace(" ", "-") not in described}
    assert not missing, f"add an example to docs/json_examples.py for {missing}"


def test_the_page_is_made_of_the_schemas() -> None:
    assert SCRIPT.PAGE.read_text(encoding="utf-8") == SCRIPT.page(), AGAIN
