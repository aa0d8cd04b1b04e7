from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.compiled_models import ONES, buffers, negating


def test_options_are_frozen_values(api: Any) -> None:
    options = api.EnvironmentOptions("a")
    assert options == api.EnvironmentOptions(runtime_path="a")
    assert hash(options) == hash(api.EnvironmentOptions("a"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.runtime_path = "b"


def test_an_environment_says_where_its_runtime_is(api: Any) -> None:
    found = api.Environment.create().options
    assert isinstance(found, api.EnvironmentOptions)
    assert Path(found.runtime_path).is_dir()


@pytest.mark.parametrize(
    "given", [{"options": "/tmp"}, {"runtime_path": "/tmp"}, {"options": None}], ids=str
)
def test_text_is_a_runtime_path(api: Any, given: Any) -> None:
    found = api.Environment.create(**given).options.runtime_path
    assert found == "/tmp" if given != {"options": None} else found


def test_options_are_kept(api: Any) -> None:
    options = api.EnvironmentOptions("/q", "/x", "/y")
    assert api.Environment.create(options=options).options == options
    made = api.Environment.create(compiler_plugin_path="/x", dispatch_library_path="/y").options
    assert (made.compiler_plugin_path, made.dispatch_library_path) == ("/x", "/y")


@pytest.mark.parametrize(
    "more",
    [{"runtime_path": "/x"}, {"compiler_plugin_path": "/x"}, {"dispatch_library_path": "/x"}],
    ids=str,
)
def test_options_and_paths_are_not_given_together(api: Any, more: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="Pass either options or environment path shortcuts"):
        api.Environment.create(options=api.EnvironmentOptions(), **more)
    with pytest.raises(ValueError, match="runtime_path was provided twice"):
        api.Environment.create(options="/tmp", runtime_path="/x")


@pytest.mark.parametrize(
    "given",
    [{"runtime_path": 3}, {"compiler_plugin_path": 3}, {"runtime_path": Path("/tmp")}],
    ids=str,
)
def test_paths_are_text(api: Any, given: Any) -> None:
    with pytest.raises(TypeError):
        api.Environment.create(**given)


def test_other_options_and_places_are_refused(api: Any) -> None:
    with pytest.raises(AttributeError):
        api.Environment.create(options=3)
    with pytest.raises(TypeError):
        api.Environment.create(api.EnvironmentOptions())


def test_a_closed_environment_makes_no_models(api: Any) -> None:
    with api.Environment.create() as environment:
        assert environment.capsule is not None
    environment.close()
    with pytest.raises(ValueError, match="Environment is no longer valid"):
        environment.capsule  # noqa: B018 - the access is the test
    with pytest.raises(ValueError, match="Environment is no longer valid"):
        api.CompiledModel.from_buffer(negating(), environment=environment)
    assert environment.options.runtime_path


def test_models_and_buffers_made_before_go_on(api: Any) -> None:
    environment = api.Environment.create()
    model = api.CompiledModel.from_buffer(negating(), environment=environment)
    (given,), (result,) = buffers(model, ONES)
    environment.close()
    model.run_by_index(0, [given], [result])
    assert result.read(4, np.float32).tolist() == [-1, -1, -1, -1]
    model.run_by_index(0, *buffers(model))
    assert model.environment is environment


def test_a_model_has_the_environment_given_or_its_own(api: Any) -> None:
    environment = api.Environment.create()
    model = api.CompiledModel.from_buffer(negating(), None, environment)
    assert model.environment is environment
    own = api.CompiledModel.from_buffer(negating()).environment
    assert isinstance(own, api.Environment)


@pytest.mark.parametrize("wrong", [3, object(), "x"], ids=lambda wrong: type(wrong).__name__)
def test_what_is_no_environment_has_no_capsule(api: Any, wrong: Any) -> None:
    with pytest.raises(AttributeError, match="capsule"):
        api.CompiledModel.from_buffer(negating(), environment=wrong)
