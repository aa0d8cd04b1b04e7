from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import find, settings
from hypothesis.strategies import none

import absent_tools
import sampling
from delegraph.delegation.configuration import CONFIG_VARIABLE, DEFAULT_DELEGATES_VARIABLE
from delegraph.plugins import installed

DEMO_MODELS = Path(__file__).parents[1] / "docs" / "demo" / "models"

os.environ[CONFIG_VARIABLE] = ""  # tests do not depend on what their user has configured
os.environ[DEFAULT_DELEGATES_VARIABLE] = ""  # nor on whether kernels of numba_cpu came along

# A slow machine is no failure. Where CI is set, Hypothesis takes its own profile "ci" instead.
settings.register_profile(
    "default", settings.get_profile("default"), deadline=None, print_blob=True
)


def pytest_configure(config: pytest.Config) -> None:
    """Let the tests of all folders be skipped where a tool has no wheel; choose their effort."""
    config.pluginmanager.register(absent_tools, "absent_tools")
    sampling.pytest_configure(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what a collection makes out of the garbage collector's sight.

    Each full run of it would go through 35,000 tests and their modules, for a third of a second.
    Hypothesis makes its generator of random numbers before: it warns of one that no object in sight
    refers to.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        find(none(), lambda _: True)
        gc.freeze()


pytest_addoption = sampling.pytest_addoption
pytest_collection_modifyitems = sampling.pytest_collection_modifyitems
pytest_report_header = sampling.pytest_report_header


@pytest.fixture(autouse=True)
def _forget_fake_plugins() -> Iterator[None]:
    """Another test may install one of the same name."""
    yield
    for name in [name for name in sys.modules if name.startswith("fake_")]:
        del sys.modules[name]


@pytest.fixture
def sines() -> Path:
    """f(x) = sin(x) + x + sin(2x), and delegates for it."""
    if not {"add_sub", "sin"} <= {offer.spec.name for offer in installed().offers()}:
        pytest.skip("delegraph-example is not installed")
    return DEMO_MODELS / "sines.tflite"
