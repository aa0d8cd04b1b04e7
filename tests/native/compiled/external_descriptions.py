"""What a compiled delegate sees of models, in one of the two hosts: a program of its own.

``python external_descriptions.py HOST LIBRARY`` reads paths of models from standard input and
prints a line of JSON for each: the path, and the description or null when the host refuses it.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from delegraph import BuiltinOperator, DelegraphError, TensorType
from delegraph.native.compiled.builtin_data import builtin_data
from delegraph.schema.options import OPTIONS_OF_OPERATOR
from delegraph.schema.table import Scalar, ScalarVector, Table
from delegraph.testing import graph_model

_HAVE_POINTERS = {BuiltinOperator.BUCKETIZE, BuiltinOperator.VAR_HANDLE}
_HAVE_POINTERS |= {BuiltinOperator.STABLEHLO_COMPOSITE}


def struct_sizes() -> dict[BuiltinOperator, int]:
    """Return the bytes of each operator's builtin_data that can be compared."""
    found = {code: builtin_data(int(code), None) for code in OPTIONS_OF_OPERATOR}
    return {
        code: ctypes.sizeof(struct)
        for code, struct in found.items()
        if struct is not None and code not in _HAVE_POINTERS
    }


def options_with_values(table: type[Table], rng: np.random.Generator) -> Table:
    """Return options whose fields differ from each other and from the defaults."""
    values: dict[str, Any] = {}
    for field in table.FIELDS:
        kind = field.kind
        if isinstance(kind, ScalarVector) and kind.enum is None:
            values[field.name] = tuple(rng.integers(1, 100, 4).tolist())
        elif not isinstance(kind, Scalar):
            continue
        elif kind.enum is TensorType:
            values[field.name] = TensorType(int(rng.integers(0, 5)))
        elif kind.enum is not None:
            values[field.name] = list(kind.enum)[int(rng.integers(len(kind.enum)))]
        elif kind.dtype == np.bool_:
            values[field.name] = bool(rng.integers(2))
        else:
            values[field.name] = kind.dtype.type(rng.integers(1, 9)).item()
    return table(**values)


def one_operator_models() -> dict[str, bytes]:
    """Return models of each operator that has a struct, four times with other options."""
    rng = np.random.default_rng(8)
    return {
        f"{code.name} {i}": graph_model(
            [(code.name, "x", "y", options_with_values(OPTIONS_OF_OPERATOR[code], rng))],
            inputs="x",
            outputs="y",
        )
        for code in sorted(struct_sizes())
        for i in range(4)
    }


def main(host: str, library: str) -> None:
    if host == "delegraph":
        from delegraph import Interpreter, OpResolverType, load_delegate
    else:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    options: dict[str, Any] = {"experimental_op_resolver_type": resolver}
    loaded = ctypes.CDLL(library)
    loaded.description.restype = ctypes.c_char_p
    sizes = " ".join(f"{int(code)}:{size}" for code, size in struct_sizes().items())
    models: dict[str, Any] = {"one " + name: model for name, model in one_operator_models().items()}
    models |= {path: Path(path) for path in sys.stdin.read().split("\n") if path}
    for name, model in models.items():
        content = model.read_bytes() if isinstance(model, Path) else model
        said: str | None = None
        try:
            delegate = load_delegate(library, {"sizes": sizes})
            Interpreter(model_content=content, experimental_delegates=[delegate], **options)
            said = loaded.description().decode(errors="replace")
        except (DelegraphError, ValueError, RuntimeError):
            pass  # a model that the host refuses
        print(json.dumps([name, said]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
