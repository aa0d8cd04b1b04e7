"""Names of this project's distributions, with their custom operators, delegates and commands."""

from __future__ import annotations

_CUSTOM_OPS = {"PosenetDecoderOp": "delegraph-edgetpu", "edgetpu-custom-op": "delegraph-edgetpu"}
_CUSTOM_OP_PREFIXES = {"Flex": "delegraph-flex"}
_EXTRAS = {"FlexSentencepiece": "sentencepiece"}
_DELEGATES = {
    "add_sub": "delegraph-example",
    "edgetpu": "delegraph-edgetpu",
    "flex": "delegraph-flex",
    "jax": "delegraph-jax",
    "numba_cpu": "delegraph-numba-cpu",
    "openvino": "delegraph-openvino",
    "sin": "delegraph-example",
}

_COMMANDS = {
    "edgetpu": "delegraph-edgetpu",
    "flex": "delegraph-flex",
    "numba": "delegraph-numba-cpu",
}

OUR_DISTRIBUTIONS = frozenset(_DELEGATES.values())
"""This project's distributions, whose delegates may be applied by default."""


def package_for(custom_name: str) -> str | None:
    """Return the distribution of this project that runs a custom operator; None if unknown.

    >>> package_for("FlexErf")
    'delegraph-flex'
    >>> package_for("MyOp") is None
    True
    """
    for prefix, package in _CUSTOM_OP_PREFIXES.items():
        if custom_name.startswith(prefix):
            return package
    return _CUSTOM_OPS.get(custom_name)


def install_command(custom_name: str) -> str | None:
    """Return the command that installs a distribution for a custom operator; None if unknown."""
    from delegraph.plugins.sources import pip_install  # lazy import: few models lack an operator

    package = package_for(custom_name)
    extra = next((e for prefix, e in _EXTRAS.items() if custom_name.startswith(prefix)), "")
    return package and pip_install(package, extra)


def package_for_delegate(name: str) -> str | None:
    """Return the distribution that has the delegate *name*; None if unknown."""
    return _DELEGATES.get(name)


def package_for_command(name: str) -> str | None:
    """Return the distribution that has the command *name*; None if unknown."""
    return _COMMANDS.get(name)
