"""The nodes of a subgraph as ``TfLiteNode`` and ``TfLiteRegistration``, each at a fixed address.

The lists of tensor indices come from ``malloc``, because a delegate may replace ``temporaries``. A
delegate may also change ``inputs``, so that a node reads other tensors; this list is read back
before partitioning.
"""

from __future__ import annotations

import ctypes
from ctypes import addressof
from functools import cache
from typing import Any

from delegraph.delegation.delegate import DelegateParams
from delegraph.native.abi import (
    REGISTRATION_FUNCTIONS,
    TfLiteContext,
    TfLiteDelegateParams,
    TfLiteNode,
    TfLiteRegistration,
    TfLiteStatus,
    callback,
    int_array,
    ints_at,
    libc,
    malloc_int_array,
)
from delegraph.native.compiled.builtin_data import builtin_data
from delegraph.operators.registration import Node, Registration
from delegraph.schema.enums import BuiltinOperator

_LISTS = ("inputs", "outputs", "intermediates", "temporaries")


class NativeNode:
    """C structs of one node and its registration.

    Attributes:
        node: the node that the structs describe.
        struct: the ``TfLiteNode``.
        registration: the ``TfLiteRegistration``; it has functions only if a compiled delegate runs
            the node.
    """

    def __init__(self, node: Node, registration: Registration, owner: int) -> None:
        self.node = node
        self.struct: Any = TfLiteNode()
        self.registration: Any = TfLiteRegistration()
        self._kept: list[Any] = []
        self._free = libc().free
        self._write_lists()
        self._write_registration(registration)
        self.struct.delegate = owner
        if isinstance(node.options, DelegateParams):
            self._point_to_data(params_struct(node.options, owner, self._kept))
        elif registration.builtin_code == BuiltinOperator.CUSTOM:
            self._write_custom_options(node.custom_options)
        else:
            self._point_to_data(builtin_data(int(registration.builtin_code), node.options))

    def __del__(self) -> None:
        for name in _LISTS:
            self._free(getattr(self.struct, name))

    @property
    def addresses(self) -> tuple[int, int]:
        """Addresses of the structs of node and registration."""
        return addressof(self.struct), addressof(self.registration)

    @property
    def temporaries(self) -> tuple[int, ...]:
        """Tensor indices of this node's working memory, which the delegate has set."""
        return ints_at(self.struct.temporaries)

    def write_inputs(self) -> None:
        """Copy the tensor indices ``node.inputs`` to the ``TfLiteNode``, if they have changed."""
        if ints_at(self.struct.inputs) != self.node.inputs:
            self._free(self.struct.inputs)
            self.struct.inputs = malloc_int_array(self.node.inputs)

    def read_inputs(self) -> None:
        """Copy the inputs from the C struct to the node, since a delegate may have changed them."""
        inputs = ints_at(self.struct.inputs)
        if inputs != self.node.inputs:
            self.node.inputs = inputs

    def _write_lists(self) -> None:
        for name in _LISTS:
            setattr(self.struct, name, malloc_int_array(getattr(self.node, name, ())))

    def _write_registration(self, registration: Registration) -> None:
        name = registration.custom_name.encode() or None
        self.registration.builtin_code = int(registration.builtin_code)
        self.registration.custom_name = name
        self.registration.version = self.node.version
        self.registration.prepare, self.registration.invoke = _not_compiled()
        self._kept.append(name)

    def _write_custom_options(self, content: bytes) -> None:
        if content:
            memory = ctypes.create_string_buffer(content, len(content))
            self._kept.append(memory)
            self.struct.custom_initial_data = addressof(memory)
            self.struct.custom_initial_data_size = len(content)

    def _point_to_data(self, data: Any) -> None:
        if data is not None:
            self._kept.append(data)
            self.struct.builtin_data = addressof(data)


def params_struct(params: DelegateParams, delegate: int, kept: list[Any]) -> Any:
    """Return the ``TfLiteDelegateParams`` of the partition *params*.

    *delegate* is the address of the delegate's struct. The arrays to which the result points are
    appended to *kept*.
    """
    lists = [
        int_array(values)
        for values in (params.nodes_to_replace, params.input_tensors, params.output_tensors)
    ]
    kept += lists
    return TfLiteDelegateParams(delegate, *map(addressof, lists))


@cache
def _not_compiled() -> tuple[int, int]:
    """Return addresses of ``prepare`` and ``invoke`` functions for nodes with Python kernels."""
    functions = [callback(REGISTRATION_FUNCTIONS[name])(_refuse) for name in ("prepare", "invoke")]
    _IMMORTAL.extend(functions)
    first, second = (ctypes.cast(function, ctypes.c_void_p).value for function in functions)
    assert first is not None
    assert second is not None
    return first, second


_IMMORTAL: list[Any] = []


def _refuse(context: int, node: int) -> int:
    report = TfLiteContext.from_address(context).ReportError
    text = b"this node has no compiled kernel: Delegraph's are written in Python"
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(report)(context, text)
    return int(TfLiteStatus.ERROR)
