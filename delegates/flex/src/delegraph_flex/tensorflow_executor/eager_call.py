"""Calls TensorFlow's eager operators by the fastest interface of the installed version."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from delegraph_flex.executor import Step

try:  # The entry below Python's wrappers takes 5 us for a small operator, tf.raw_ops 7 to 15.
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context as eager_context
except ImportError:
    pywrap_tfe = None

_NOISE = re.compile(r"\{\{[^}]*\}\}\s*|\[\[[^\]]*\]\]|\s*\[Op:\w+\]( name: \S*)?|\(\d+\) \w+: ")


def eager_call(op_def: Any, count: int, attrs: Sequence[Any], device: str) -> Step:
    """Return the function that computes an operator on eager tensors.

    Args:
        op_def: TensorFlow's OpDef.
        count: number of outputs.
        attrs: names and values of attributes, alternating, with types as integers, shapes as lists,
            functions by name.
        device: name of the device that runs the operator.
    """
    if pywrap_tfe is None:
        return _public_call(op_def, count, attrs, device)
    return named_call(op_def.name, count, attrs, device)


def named_call(name: str, count: int, attrs: Sequence[Any], device: str) -> Step:
    """Return the function that computes the operator or TensorFlow function *name* on *device*.

    *count* is the number of outputs; *attrs* are names and values of attributes, alternating.
    """
    context = eager_context.context()
    context.ensure_initialized()
    handle, execute, flat = context._handle, pywrap_tfe.TFE_Py_Execute, tuple(attrs)

    def single(*values: Any) -> Any:
        return execute(handle, device, name, list(values), flat, 1)[0]

    def several(*values: Any) -> Any:
        return execute(handle, device, name, list(values), flat, count)

    return single if count == 1 else several


def message_of(error: BaseException) -> str:
    """Return TensorFlow's error message without the names of its internal functions."""
    text = getattr(error, "message", None) or str(error)
    return _NOISE.sub("", text).strip().split("\n")[0] or type(error).__name__


def _public_call(op_def: Any, count: int, attrs: Sequence[Any], device: str) -> Step:
    """Return the call of ``tf.raw_ops``, whose parameter names may differ from those of *op_def*.

    *count* is the number of outputs; *attrs* are names and values of attributes, alternating.
    """
    function = getattr(tf.raw_ops, op_def.name)
    names = [name for name in inspect.signature(function).parameters if name != "name"]
    inputs = [
        arg.name if arg.name in names else name
        for arg, name in zip(op_def.input_arg, names, strict=False)
    ]
    given = dict(zip(attrs[::2], attrs[1::2], strict=True))
    kinds = {attr.name: attr.type for attr in op_def.attr}
    fixed = {name: _public(kinds[name], given[name]) for name in given if name in names}
    groups = [_group(arg, given) for arg in op_def.input_arg]

    def run(*values: Any) -> Any:
        rest = iter(values)
        arguments = {
            name: next(rest) if size is None else [next(rest) for _ in range(size)]
            for name, size in zip(inputs, groups, strict=True)
        }
        with tf.device(device):
            results = _flat(function(**arguments, **fixed))
        return results[0] if count == 1 else results

    return run


def _group(arg: Any, attrs: dict[str, Any]) -> int | None:
    """Return the number of tensors in *arg*, a list input; None for a single tensor.

    *arg* is from the OpDef; *attrs* are the operator's attributes.
    """
    if arg.number_attr:
        return int(attrs[arg.number_attr])
    return len(attrs[arg.type_list_attr]) if arg.type_list_attr else None


def _public(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        return [_public(kind[5:-1], item) for item in value]
    if kind == "type":
        return tf.dtypes.as_dtype(value)
    return tf.TensorShape(value) if kind == "shape" else value


def _flat(result: Any) -> list[Any]:
    if result is None or isinstance(result, tf.Operation):
        return []
    if not isinstance(result, list | tuple):
        return [result]
    return [tensor for item in result for tensor in _flat(item)]
