"""The delegate as users start it: options, cache, what it leaves, known faults of the engine."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

import jax
import jax.numpy as jnp
from jax import lax

from chain_model import chain
from delegraph import Interpreter, load_delegate
from delegraph.errors import PluginOptionError
from delegraph_jax import compiling, kernel
from delegraph_jax.compiling import compile_safely
from delegraph_jax.delegate import CAPABILITIES, JaxDelegate
from delegraph_jax.operators import OPERATORS
from delegraph_jax.options import JaxOptions


def _run(model: bytes, x: np.ndarray, cache: Path | None = None) -> np.ndarray:
    delegate = load_delegate("jax")
    with Interpreter(
        model_content=model, experimental_delegates=[delegate], cache_dir=cache
    ) as interpreter:
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def test_many_operators_are_claimed() -> None:
    assert len(OPERATORS) >= 90
    assert {name for claim in CAPABILITIES.claims for name in claim.operators} == set(OPERATORS)


def test_second_start_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = chain("TANH", "SQUARE"), np.array([1, 2, 3], np.float32)
    first = _run(model, x, tmp_path)
    monkeypatch.setattr(kernel, "compiled", lambda *given: pytest.fail("compiled again"))

    second = _run(model, x, tmp_path)

    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(second, np.tanh(x) ** 2, rtol=1e-5)


def test_executables_of_other_code_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compiling.version()
    shutil.copytree(Path(compiling.__file__).parent, tmp_path / "package")
    changed = tmp_path / "package" / "operators" / "shaping.py"
    changed.write_text(changed.read_text().replace("jnp.tile", "np.tile"))
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "package" / "compiling.py"))
    compiling.version.cache_clear()
    try:
        assert compiling.version() != before
    finally:
        compiling.version.cache_clear()


def test_other_precision_of_the_process_is_left_alone() -> None:
    before = jax.config.jax_enable_x64
    _run(chain("TANH"), np.zeros(3, np.float32))
    assert jax.config.jax_enable_x64 == before


@pytest.mark.parametrize("device", ["", "cpu:", "cpu:x"])
def test_malformed_device_is_refused(device: str) -> None:
    with pytest.raises(ValueError, match="expected PLATFORM"):
        JaxOptions(device=device)


@pytest.mark.parametrize("device", ["cpu:99", "toaster"])
def test_absent_device_is_refused_with_those_that_are_there(device: str) -> None:
    with pytest.raises(PluginOptionError, match="JAX finds cpu:0"):
        JaxDelegate(JaxOptions(device=device))


def test_padded_sum_of_a_convolution_is_pooled_rightly() -> None:
    """JAX 0.10.2 alone is off by several units here: see ``compiling``."""
    generator = np.random.default_rng(0)
    shapes = (1, 64, 64, 24), (3, 3, 24, 24), (1, 1, 24, 28)
    x, first, second = (generator.standard_normal(shape, np.float32) for shape in shapes)

    def convolve(x: jax.Array, weight: jax.Array) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=layout)

    def padded_sum(x: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
        x = jax.nn.relu(x)
        return jnp.pad(x, [(0, 0)] * 3 + [(0, 4)]) + convolve(convolve(x, first), second)

    def pooled(*arguments: jax.Array) -> jax.Array:
        window = (1, 2, 2, 1)
        return lax.reduce_window(padded_sum(*arguments), -np.inf, lax.max, window, window, "SAME")

    compiled = compile_safely(jax.jit(pooled).lower(x, first, second), "cpu")

    sums = np.asarray(jax.jit(padded_sum)(x, first, second))
    expected = sums.reshape(1, 32, 2, 32, 2, 28).max((2, 4))
    np.testing.assert_allclose(compiled(x, first, second), expected, atol=1e-2)
