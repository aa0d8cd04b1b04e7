"""Run TFLite models in Python and hand parts of the graph to delegates.

Everything a user or a delegate's author needs is importable from here; each name is loaded when it
is first used, so that a plugin's light module stays light.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from delegraph.runtime.delegates.compiled_delegates import set_library_loader

if TYPE_CHECKING:
    from delegraph.delegation.capabilities import Capabilities as Capabilities
    from delegraph.delegation.capabilities import Claim as Claim
    from delegraph.delegation.capabilities import Tolerance as Tolerance
    from delegraph.delegation.delegate import Delegate as Delegate
    from delegraph.delegation.delegate import DelegateContext as DelegateContext
    from delegraph.delegation.delegate import DelegateFlags as DelegateFlags
    from delegraph.delegation.delegate import DelegateOptions as DelegateOptions
    from delegraph.delegation.delegate import DelegateParams as DelegateParams
    from delegraph.delegation.delegate import Rejection as Rejection
    from delegraph.delegation.graph_partition_helper import (
        FP16GraphPartitionHelper as FP16GraphPartitionHelper,
    )
    from delegraph.delegation.graph_partition_helper import (
        GraphPartitionHelper as GraphPartitionHelper,
    )
    from delegraph.delegation.placement import Placement as Placement
    from delegraph.delegation.rules import PlacementRule as PlacementRule
    from delegraph.delegation.simple_delegate import (
        SimpleDelegateInterface as SimpleDelegateInterface,
    )
    from delegraph.delegation.simple_delegate import (
        SimpleDelegateKernelInterface as SimpleDelegateKernelInterface,
    )
    from delegraph.errors import DelegraphError as DelegraphError
    from delegraph.errors import ModelError as ModelError
    from delegraph.operators.custom_op import CustomOp as CustomOp
    from delegraph.operators.custom_op import TensorDescription as TensorDescription
    from delegraph.operators.custom_op import custom_op as custom_op
    from delegraph.operators.custom_op import register_custom_op as register_custom_op
    from delegraph.operators.custom_op import unregister_custom_op as unregister_custom_op
    from delegraph.operators.custom_options import CustomOptions as CustomOptions
    from delegraph.operators.registration import Eval as Eval
    from delegraph.operators.registration import InPlace as InPlace
    from delegraph.operators.registration import Node as Node
    from delegraph.operators.registration import OpContext as OpContext
    from delegraph.operators.registration import Registration as Registration
    from delegraph.operators.tensor import AllocationType as AllocationType
    from delegraph.operators.tensor import Tensor as Tensor
    from delegraph.plugins.delegate_file import delegate_from_file as delegate_from_file
    from delegraph.plugins.hookspecs import hookimpl as hookimpl
    from delegraph.plugins.specs import CommandSpec as CommandSpec
    from delegraph.plugins.specs import CustomOpSpec as CustomOpSpec
    from delegraph.plugins.specs import DelegateSpec as DelegateSpec
    from delegraph.runtime.delegates.delegate_choice import load_delegate as load_delegate
    from delegraph.runtime.interpreter import Interpreter as Interpreter
    from delegraph.runtime.op_resolver import OpResolverType as OpResolverType
    from delegraph.runtime.signature_runner import SignatureRunner as SignatureRunner
    from delegraph.schema.enums import ActivationFunctionType as ActivationFunctionType
    from delegraph.schema.enums import BuiltinOperator as BuiltinOperator
    from delegraph.schema.enums import TensorType as TensorType

    __version__: str

_MODULES = {
    "delegation.capabilities": ("Capabilities", "Claim", "Tolerance"),
    "delegation.delegate": (
        "Delegate",
        "DelegateContext",
        "DelegateFlags",
        "DelegateOptions",
        "DelegateParams",
        "Rejection",
    ),
    "delegation.graph_partition_helper": ("FP16GraphPartitionHelper", "GraphPartitionHelper"),
    "delegation.placement": ("Placement",),
    "delegation.rules": ("PlacementRule",),
    "delegation.simple_delegate": ("SimpleDelegateInterface", "SimpleDelegateKernelInterface"),
    "errors": ("DelegraphError", "ModelError"),
    "operators.custom_op": (
        "CustomOp",
        "TensorDescription",
        "custom_op",
        "register_custom_op",
        "unregister_custom_op",
    ),
    "operators.custom_options": ("CustomOptions",),
    "operators.registration": ("Eval", "InPlace", "Node", "OpContext", "Registration"),
    "operators.tensor": ("AllocationType", "Tensor"),
    "plugins.delegate_file": ("delegate_from_file",),
    "plugins.hookspecs": ("hookimpl",),
    "plugins.specs": ("CommandSpec", "CustomOpSpec", "DelegateSpec"),
    "runtime.delegates.delegate_choice": ("load_delegate",),
    "runtime.interpreter": ("Interpreter",),
    "runtime.op_resolver": ("OpResolverType",),
    "runtime.signature_runner": ("SignatureRunner",),
    "schema.enums": ("ActivationFunctionType", "BuiltinOperator", "TensorType"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*sorted(_HOME)]


def _external_delegate(library: str, options: Mapping[str, Any]) -> Delegate:
    """Return the delegate of a compiled library; the layer that can do so is loaded when needed."""
    from delegraph.native.compiled.external_delegate import ExternalDelegate

    return ExternalDelegate(library, options)


set_library_loader(_external_delegate)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("delegraph")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "__version__"})
