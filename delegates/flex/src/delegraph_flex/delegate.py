"""The delegate: decides which Flex operators it supports, and gives the reasons for rejections."""

from __future__ import annotations

from delegraph import (
    BuiltinOperator,
    Capabilities,
    DelegateContext,
    DelegateFlags,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
)
from delegraph_flex.capabilities import capabilities
from delegraph_flex.custom_options import PREFIX, read_custom_options
from delegraph_flex.data_types import DataType
from delegraph_flex.executors import executor_named, has_tensorflow
from delegraph_flex.extras import install_command
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.kernel import FlexKernel
from delegraph_flex.node_def import NodeDefError
from delegraph_flex.node_environment import node_environment
from delegraph_flex.numpy_executor.registry import OPERATORS
from delegraph_flex.options import FlexOptions
from delegraph_flex.side_effects import reject_by_side_effect

VERSION = 1
"""The only version of Flex operators so far."""


class FlexDelegate(SimpleDelegateInterface):
    """Runs every operator whose custom code begins with ``Flex``.

    Args:
        options: see :class:`~delegraph_flex.options.FlexOptions`.

    Raises:
        DelegateError: the requested executor is not installed.
    """

    def __init__(self, options: FlexOptions | None = None) -> None:
        self._options = options or FlexOptions()
        self._executor = executor_named(self._options.executor)

    def name(self) -> str:
        return "flex"

    def note(self) -> str:
        return f"by {self._executor.describe()}"

    def capabilities(self) -> Capabilities:
        return capabilities()

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        name = registration.custom_name
        if registration.builtin_code != BuiltinOperator.CUSTOM or not name.startswith(PREFIX):
            return Rejection("op", actual=registration.name, expected=f"{PREFIX}...")
        if not registration.is_unresolved:
            return Rejection("resolved", f"{name} has a kernel of its own, which was registered")
        if node.version > VERSION:
            return Rejection("version", actual=node.version, expected=VERSION)
        try:
            flex_node = self.flex_node(node, context)
            rejection = reject_by_side_effect(flex_node, self._options.allow)
            if rejection is None:
                self._executor.bind(flex_node)
        except NodeDefError as error:
            return Rejection("options", str(error))
        except Unsupported as error:
            return Rejection(error.constraint, f"{error}{self._elsewhere(error, flex_node)}")
        return True if rejection is None else rejection

    def create_delegate_kernel_interface(self) -> FlexKernel:
        return FlexKernel(self._executor, self.flex_node)

    def flex_node(self, node: Node, context: DelegateContext) -> FlexNode:
        """Return *node* in the form that executors read: with a parsed NodeDef.

        Raises:
            NodeDefError: the node is not in a form that the converter would write.
        """
        node_def = read_custom_options(node.custom_options)
        if -1 in node.inputs or -1 in node.outputs:
            raise NodeDefError("a tensor is left out, which TensorFlow's operators do not know")
        if node_def.num_inputs != len(node.inputs):
            raise NodeDefError(
                f"its NodeDef has {node_def.num_inputs} inputs, the node {len(node.inputs)}"
            )
        inputs = tuple(context.tensors[i].type for i in node.inputs)
        outputs = tuple(context.tensors[i].type for i in node.outputs)
        for type in (*inputs, *outputs):
            if type.name not in DataType.__members__:
                raise NodeDefError(f"a tensor is {type.name}, a type that TensorFlow does not have")
        return FlexNode(node.index, node_def, inputs, outputs, node_environment(context))

    def _elsewhere(self, error: Unsupported, node: FlexNode) -> str:
        """Return the hint that the other executor may run the node; empty if it cannot."""
        if self._executor.name == "numpy":
            if has_tensorflow():
                return "; executor=tensorflow may run it"
            return f"; executor=tensorflow may run it: {install_command('tensorflow')}"
        is_there = error.constraint == "executor" and node.op in OPERATORS
        return "; executor=numpy has it" if is_there else ""
