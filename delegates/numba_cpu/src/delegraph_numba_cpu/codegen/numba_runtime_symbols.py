"""Symbols of Numba that kernels refer to but do not use, because kernels raise no exceptions."""

from __future__ import annotations

UNUSED = (
    "NRT_Free",
    "NRT_MemInfo_call_dtor",
    "PyBytes_FromStringAndSize",
    "PyErr_Clear",
    "PyErr_SetNone",
    "PyErr_SetString",
    "PyErr_WriteUnraisable",
    "PyExc_RuntimeError",
    "PyExc_StopIteration",
    "PyExc_SystemError",
    "PyUnicode_FromString",
    "Py_DecRef",
    "numba_do_raise",
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_runtime_build_excinfo_struct",
    "numba_unpickle",
)
"""Symbols that a linker must find; nothing calls or reads them."""
