"""The self-check with one C struct altered: ``python altered_layouts.py CHANGE [API]``.

``Tensor.dims+`` has eight bytes more before the field ``dims``, as if a runtime had a field there
that Delegraph does not know; ``Context.ResizeTensor=ReportError`` has two fields exchanged;
``Registration.inplace_operator-`` has one less. ``Environment._HANDLE+8`` expects what an offset in
``environment.py`` is about eight bytes later. ``none`` alters nothing. The API is a package with an
``Interpreter``, or ``CompiledModel``.
"""

from __future__ import annotations

import sys
from ctypes import PYFUNCTYPE, Structure, c_uint64
from typing import Any

from delegraph.native import abi


def alter(change: str) -> None:
    """Replace the struct that *change* is about, before any other module has read it."""
    name, _, what = change.partition(".")
    if name == "Environment":
        offset, _, by = what.partition("+")
        from delegraph.native.litert import environment

        setattr(environment, offset, getattr(environment, offset) + int(by))
        return
    struct: Any = getattr(abi, f"TfLite{name}")
    fields = list(struct._fields_)
    names = [field[0] for field in fields]
    if what.endswith("+"):
        fields.insert(names.index(what[:-1]), ("unknown_", c_uint64))
    elif what.endswith("-"):
        del fields[names.index(what[:-1])]
    else:
        a, b = (names.index(part) for part in what.split("="))
        fields[a], fields[b] = fields[b], fields[a]
    changed = type(struct.__name__, (Structure,), {"_fields_": fields})
    setattr(abi, struct.__name__, changed)
    for function, signature in abi.CONTEXT_FUNCTIONS.items():
        if struct in signature:
            types = tuple(changed if part is struct else part for part in signature)
            abi.CALLED[function] = PYFUNCTYPE(*types)


if __name__ == "__main__":
    if sys.argv[1] != "none":
        alter(sys.argv[1])
    from delegraph.native.litert import compiled_model_check, self_check

    is_interpreter = sys.argv[2:] != ["CompiledModel"]
    sys.exit((self_check if is_interpreter else compiled_model_check).main(sys.argv[2:]))
