"""Converts TensorFlow models to ``.tflite`` files that may contain TensorFlow's operators."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from delegraph.errors import ArgumentError
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.extras import install_command

BUILTINS_FIRST = ("TFLITE_BUILTINS", "SELECT_TF_OPS")
"""Sets of operators: builtin operators if they exist, otherwise TensorFlow's."""


def convert(
    source: Any,
    supported_ops: Sequence[str] = BUILTINS_FIRST,
    *,
    signatures: Sequence[str] = (),
    allow_all: bool = False,
    **settings: Any,
) -> bytes:
    """Return the model that TensorFlow's converter writes, with Flex operators where needed.

    Args:
        source: path of a SavedModel's folder, a ``.keras`` or ``.h5`` file, a Keras model, a
            ``tf.function`` with an input signature, or one or several concrete functions.
        supported_ops: names of ``tf.lite.OpsSet``. By default, TensorFlow's operators are used only
            where there is no builtin operator; ``["SELECT_TF_OPS"]`` alone uses them everywhere.
        signatures: keys of the SavedModel's signatures to convert; all of them if empty.
        allow_all: whether to accept operators that are not on the converter's allowlist, which the
            delegate ignores.
        settings: further attributes of the converter: ``optimizations``,
            ``representative_dataset``, ...

    Raises:
        ArgumentError: (ValueError) TensorFlow is not installed, or an argument is wrong. Errors of
            the converter itself are raised unchanged.
    """
    if not has_tensorflow():
        raise ArgumentError(f"converting needs TensorFlow: {install_command('tensorflow')}")
    import tensorflow as tf

    converter = _converter(tf, source, list(signatures))
    known = tf.lite.OpsSet.__members__
    unknown = [name for name in supported_ops if name not in known]
    if unknown or not supported_ops:
        raise ArgumentError(
            f"supported_ops has {unknown[0] if unknown else 'no entry'!r}, expected names among "
            + ", ".join(known)
        )
    converter.target_spec.supported_ops = [known[name] for name in supported_ops]
    converter._experimental_allow_all_select_tf_ops = allow_all
    for name, value in settings.items():
        if not hasattr(converter, name):
            raise ArgumentError(f"TensorFlow's converter has no setting {name!r}")
        setattr(converter, name, value)
    result = converter.convert()
    assert isinstance(result, bytes)
    return result


def _converter(tf: Any, source: Any, signatures: list[str]) -> Any:
    """Return TensorFlow's converter for *source*: a SavedModel, a Keras file or a Python object.

    *tf* is the module ``tensorflow``; *signatures* are keys of the SavedModel's signatures.
    """
    make = tf.lite.TFLiteConverter
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        return _of_saved_model(make, Path(source), signatures)
    if signatures:
        raise ArgumentError("signatures are those of a SavedModel, which this is not")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise ArgumentError(f"no SavedModel and no Keras file at {os.fspath(path)!r}")
        return make.from_keras_model(tf.keras.models.load_model(path))
    if isinstance(source, tf.keras.Model):
        return make.from_keras_model(source)
    functions = [_concrete(tf, f) for f in (source if isinstance(source, list) else [source])]
    return make.from_concrete_functions(functions)


def _of_saved_model(make: Any, folder: Path, signatures: list[str]) -> Any:
    if not any(folder.glob("saved_model.*")):
        raise ArgumentError(
            f"no SavedModel in the folder {str(folder)!r}: it has no saved_model.pb"
        )
    try:
        return make.from_saved_model(str(folder), signature_keys=signatures or None)
    except ValueError as error:
        if "Invalid signature key" not in str(error):
            raise
        raise ArgumentError(f"{str(folder)!r}: {error}") from error


def _concrete(tf: Any, function: Any) -> Any:
    if isinstance(function, tf.types.experimental.ConcreteFunction):
        return function
    if getattr(function, "input_signature", None) is None:
        raise ArgumentError(
            f"{function!r} is no model: expected a SavedModel's folder, a Keras model or file, a "
            "tf.function with an input_signature, or concrete functions"
        )
    return function.get_concrete_function()
