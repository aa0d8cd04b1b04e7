from __future__ import annotations

import subprocess
import sys

import pytest

import delegraph_edgetpu
from delegraph.plugins import installed


def loaded_after(source: str) -> set[str]:
    """Return the package's modules that are loaded in a new Python after it has run *source*."""
    code = f"{source}\nimport sys\nprint(*(m for m in sys.modules if 'delegraph_edgetpu' in m))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return {name.partition(".")[2] for name in done.stdout.split()} - {""}


def test_listing_plugins_loads_nothing_heavy() -> None:
    source = "from delegraph.plugins import installed\ninstalled().plugins"
    assert loaded_after(source) == {"options", "plugin"}


def test_checking_options_loads_the_devices_alone() -> None:
    source = "from delegraph_edgetpu.options import EdgeTpuOptions\nEdgeTpuOptions('usb')"
    assert loaded_after(source) == {"devices", "options"}


def test_importing_the_package_loads_nothing() -> None:
    assert loaded_after("import delegraph_edgetpu") == set()


@pytest.mark.parametrize("name", delegraph_edgetpu.__all__)
def test_what_the_package_exports_is_there(name: str) -> None:
    assert getattr(delegraph_edgetpu, name).__name__ == name


def test_what_the_package_does_not_export_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="compil"):
        delegraph_edgetpu.compil  # noqa: B018 - it is looked up


def test_the_plugin_offers_delegate_operators_and_command() -> None:
    (plugin,) = (each for each in installed().plugins if each.name == "edgetpu")
    assert [spec.name for spec in plugin.delegates] == ["edgetpu"]
    assert [spec.name for spec in plugin.custom_ops] == ["edgetpu-custom-op", "PosenetDecoderOp"]
    assert [spec.name for spec in plugin.commands] == ["edgetpu"]
    for name in ("edgetpu-custom-op", "PosenetDecoderOp"):
        assert installed().custom_ops()[name].load()
    assert installed().load_command("edgetpu") is not None
