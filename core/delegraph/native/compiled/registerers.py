"""Gets custom operators that C++ registerers add to an official runtime's resolver.

A registerer contains compiled calls of ``tflite::MutableOpResolver`` of one version. So the
resolver must have the layout of that version, and an official runtime creates it. Operators are
looked up by the virtual function ``FindOp``, whose address is in the object's table.

Source:
    OpResolver, tflite/core/api/op_resolver.h; RegisterCustomOpByName,
    tflite/python/interpreter_wrapper/interpreter_wrapper.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ctypes import CFUNCTYPE, c_char_p, c_int, c_void_p
from functools import cache
from typing import Any

from delegraph.delegation.delegate import DelegateContext
from delegraph.errors import ArgumentError, UnsupportedRuntimeError
from delegraph.native.abi import TfLiteRegistration
from delegraph.native.compiled.context import NativeContext
from delegraph.native.compiled.context_functions import Contexts, context_of
from delegraph.native.compiled.external_delegate import address_of_owner, require_right_platform
from delegraph.native.compiled.external_kernel import KernelFunctions, kernel_registration
from delegraph.native.litert.installed_runtimes import interpreter_module
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.operators.registration import Registration
from delegraph.runtime.official.custom_op_registerers import PythonResolver, Registerer, Resolver
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator
from delegraph.schema.writer import write_model

FindBuiltin = CFUNCTYPE(c_void_p, c_void_p, c_int, c_int)
_FindCustom = CFUNCTYPE(c_void_p, c_void_p, c_char_p, c_int)
_VERSION = 1
"""Version of custom operators; converters write no other version."""


def registered_ops(
    registerers: Sequence[Registerer], names: Iterable[str]
) -> dict[str, AnyCustomOp]:
    """Return the operators of *names* that the registerers provide.

    Raises:
        ArgumentError: a registerer's C function does not exist.
        UnsupportedRuntimeError: a registerer is no Python function, and no official runtime is
            installed or its resolver has an unknown layout.
    """
    try:
        official = interpreter_module()
    except UnsupportedRuntimeError:
        if any(isinstance(registerer, str) for registerer in registerers):
            raise
        return _of_python([r for r in registerers if not isinstance(r, str)])
    require_right_platform("registerers of custom operators")
    filled, plain = OfficialResolver(official, registerers), OfficialResolver(official, ())
    found: dict[str, AnyCustomOp] = {}
    for name in sorted(names):
        functions = filled.find(name)
        if functions is not None and functions != plain.find(name):
            found[name] = _registration(name, functions)
    return {**found, **filled.ops}


def _of_python(functions: Sequence[Callable[[Any], object]]) -> dict[str, AnyCustomOp]:
    resolver = PythonResolver()
    for function in functions:
        function(resolver)  # raises an error if it needs an address
    return resolver.ops


class OfficialResolver:
    """A C++ resolver filled by registerers; it exists as long as its interpreter."""

    def __init__(self, official: Any, registerers: Sequence[Registerer]) -> None:
        self.ops: dict[str, AnyCustomOp] = {}
        addresses: list[int] = []
        functions = [r if isinstance(r, str) else self._with_ops(r) for r in registerers]
        try:
            self._interpreter = official.InterpreterWithCustomOps(
                custom_op_registerers=[*functions, addresses.append], model_content=_empty_model()
            )
        except ValueError as error:  # an unknown name; errors of the function are raised
            if not str(error).startswith(("Looking up symbol", "Loading library")):
                raise
            raise ArgumentError(str(error)) from error
        self._address = addresses[0]
        self._table = c_void_p.from_address(self._address).value or 0
        self._require_known_table()

    def _with_ops(self, function: Callable[[int], object]) -> Callable[[int], None]:
        def register(address: int) -> None:
            resolver = Resolver(address)
            function(resolver)
            self.ops.update(resolver.ops)

        return register

    def slot(self, index: int) -> int:
        """Return the address in slot *index* of the table of virtual functions; 0 if absent."""
        return c_void_p.from_address(self._table + 8 * index).value or 0

    def _require_known_table(self) -> None:
        """Check the layout of the C++ object by looking up the operator ADD.

        Raises:
            UnsupportedRuntimeError: the first function in the table does not find ADD.
        """
        address = FindBuiltin(self.slot(0))(self._address, int(BuiltinOperator.ADD), 1)
        if address:
            registration = TfLiteRegistration.from_address(address)
            if registration.builtin_code == BuiltinOperator.ADD and registration.invoke:
                return
        raise UnsupportedRuntimeError(
            "the resolver of the installed official runtime is not as those known; another version "
            "of it may do: pip install ai-edge-litert"
        )

    def find(self, name: str) -> tuple[int, ...] | None:
        """Return the addresses of the functions of custom operator *name*; None if unknown."""
        address = _FindCustom(self.slot(1))(self._address, name.encode(), _VERSION)
        if not address:
            return None
        found = TfLiteRegistration.from_address(address)
        return tuple(getattr(found, field) or 0 for field in ("init", "free", "prepare", "invoke"))


def _registration(name: str, functions: tuple[int, ...]) -> Registration:
    init, free, prepare, invoke = functions
    struct = TfLiteRegistration(init, free, prepare, invoke)
    owner = _CustomOpOwner(name)
    return kernel_registration(
        owner.native_context, KernelFunctions(struct), name, BuiltinOperator.CUSTOM
    )


class _CustomOpOwner:
    """Owner of the compiled kernels of a custom operator, with the methods of a delegate."""

    address = 0

    def __init__(self, name: str) -> None:
        self._name = name
        self._contexts = Contexts()

    def name(self) -> str:
        """Return the name for logs."""
        return self._name

    def native_context(self, context: DelegateContext) -> NativeContext:
        """Return the native context of a subgraph, created once per subgraph."""
        return context_of(self, self._contexts, context)

    @staticmethod
    def address_of_owner(delegate: object | None) -> int:
        """Return the C address that represents the owner of a tensor; 0 if there is none."""
        return address_of_owner(delegate)

    def retain(self) -> None:
        """Do nothing, because the library is never unloaded."""

    def release(self) -> None:
        """Do nothing, because the library is never unloaded."""


@cache
def _empty_model() -> bytes:
    """Return the smallest valid model, with one tensor but no operators."""
    subgraph = tables.SubGraph(tensors=(tables.Tensor(shape=(1,)),))
    return write_model(tables.Model(version=3, subgraphs=(subgraph,), buffers=(tables.Buffer(),)))
