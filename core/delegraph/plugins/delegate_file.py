"""Loads a delegate from a single Python file that is not part of a package."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from inspect import Parameter
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from delegraph.errors import ArgumentError, PluginError, PluginLoadError
from delegraph.operators.custom_options import signature_of
from delegraph.plugins.creation import make_delegate
from delegraph.plugins.options import Given
from delegraph.plugins.plugin import one_line
from delegraph.plugins.specs import DELEGATE_NAME, DelegateSpec

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate

HOOK = "delegraph_delegates"
VARIABLE = "delegate"
EXPECTED = (
    "expected one class that is a SimpleDelegateInterface or a Delegate, a function or object "
    f"named {VARIABLE!r}, or the hook {HOOK!r} with one delegate"
)

Found = TypeVar("Found")


def delegate_from_file(path: str | os.PathLike[str], options: Given = None) -> Delegate:
    """Return the delegate that a Python file defines; the file is run anew at each call.

    The file must define one of these, tried in this order: the hook ``delegraph_delegates`` with
    one delegate, as in a plugin; a function, class or object named ``delegate``; a single class
    that is a ``SimpleDelegateInterface`` or a ``Delegate``. A function or class takes no argument,
    or one argument annotated with a dataclass, whose fields are the options. A class may annotate
    its attribute ``options`` instead. While the file runs, it may import modules in its folder.

    Args:
        path: the file.
        options: the delegate's options as text, a mapping, or an instance of that dataclass.

    Raises:
        ArgumentError: the file does not exist.
        PluginLoadError: the file cannot be run, or defines no delegate or several.
        PluginOptionError: the options do not fit.
    """
    file = Path(path)
    if not file.is_file():
        raise ArgumentError(f"no delegate file {str(file)!r}")
    provider = f"file {str(file)!r}"
    with _blamed(file, provider):
        module = _run(file)
        hook = getattr(module, HOOK, None)
        spec = _spec(module, file.stem, provider) if hook is None else _only_spec(hook(), provider)
    return make_delegate(spec, options or None, provider)


def _run(file: Path) -> ModuleType:
    """Run the file as a new module; no cache is used, since the user may have just edited it."""
    module = ModuleType(f"delegate_file:{file.resolve()}")
    module.__spec__ = ModuleSpec(module.__name__, SourceFileLoader(module.__name__, str(file)))
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses look up their module there
    with _importable(file.resolve().parent):
        exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), vars(module))
    return module


@contextlib.contextmanager
def _blamed(file: Path, provider: str) -> Iterator[None]:
    """Context that turns an error of the file's code into a ``PluginLoadError`` with the line.

    Args:
        file: path of the delegate's Python file.
        provider: words for the file in error messages.
    """
    try:
        yield
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:  # a file may raise anything, SystemExit too
        raise PluginLoadError(f"{provider}{_line(file, error)}: {one_line(error)}") from error


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Make the modules of *folder* importable within the block."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file itself may have removed it
            sys.path.remove(str(folder))


def _line(file: Path, error: BaseException) -> str:
    """Text with the line of the file that raised *error*; empty when the line is unknown."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f", line {error.lineno}"
    lines = [
        frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(file)
    ]
    return f", line {lines[-1]}" if lines else ""


def _spec(module: ModuleType, name: str, provider: str) -> DelegateSpec:
    """Return the spec of the delegate in *module*, which has no plugin hook.

    Args:
        module: the module made from the delegate's file.
        name: name of the file without ending, which becomes the delegate's name if allowed.
        provider: words for the file in error messages.
    """
    made = getattr(module, VARIABLE, None)
    if made is None:
        made = _only_class(module, provider)
    name = name if re.fullmatch(DELEGATE_NAME, name) else VARIABLE
    if not callable(made):
        return DelegateSpec(name, "", lambda: lambda: made)
    return DelegateSpec(name, "", lambda: made, _options_class(made, provider))


def _only_spec(answer: object, provider: str) -> DelegateSpec:
    if not isinstance(answer, list | tuple) or not all(
        isinstance(spec, DelegateSpec) for spec in answer
    ):
        raise PluginLoadError(
            f"{HOOK} of {provider} returned {answer!r}, expected a list of DelegateSpec"
        )
    specs: Sequence[DelegateSpec] = answer
    return _only(specs, [spec.name for spec in specs], provider)


def _only_class(module: ModuleType, provider: str) -> type:
    from delegraph.delegation.delegate import Delegate
    from delegraph.delegation.simple_delegate import SimpleDelegateInterface

    own = [
        value
        for value in dict.fromkeys(v for v in vars(module).values() if isinstance(v, type))
        if issubclass(value, Delegate | SimpleDelegateInterface)
        and value.__module__ == module.__name__
    ]
    complete = [value for value in own if not inspect.isabstract(value)]
    if own and not complete:
        lacks = ", ".join(sorted(own[0].__abstractmethods__))
        raise PluginLoadError(f"class {own[0].__name__} of {provider} lacks methods: {lacks}")
    return _only(complete, [value.__name__ for value in complete], provider)


def _only(found: Sequence[Found], names: Sequence[str], provider: str) -> Found:
    if len(found) == 1:
        return found[0]
    count = f"{len(names)} delegates ({', '.join(names)})" if names else "no delegate"
    raise PluginLoadError(f"{provider} defines {count}; {EXPECTED}")


def _options_class(make: Callable[..., Any], provider: str) -> type | None:
    """Return the options dataclass that the function *make* takes; None if it takes nothing.

    Raises:
        PluginLoadError: the function requires other arguments.
    """
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    parameters = [p for p in signature_of(make).parameters.values() if p.kind not in variadic]
    options = None
    if parameters and parameters[0].kind is not Parameter.KEYWORD_ONLY:
        name = parameters[0].name
        for annotation in (_annotations(make).get(name), _attribute_type(make, name)):
            if isinstance(annotation, type) and is_dataclass(annotation):
                options = annotation
                break
    others = parameters if options is None else parameters[1:]
    needed = [p.name for p in others if p.default is Parameter.empty]
    if needed:
        made = getattr(make, "__qualname__", VARIABLE)
        raise PluginLoadError(
            f"{made} of {provider} needs arguments: {', '.join(needed)}; it may take none, or one "
            "that is annotated with a dataclass of options"
        )
    return options


def _annotations(make: Callable[..., Any]) -> dict[str, Any]:
    try:
        called: Any = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]  # its own
        return typing.get_type_hints(called)
    except Exception:  # noqa: BLE001 - names that only a type checker knows; then there are none
        return {}


def _attribute_type(make: Callable[..., Any], name: str) -> object:
    """Type with which the class *make* annotates its attribute *name*; None if it has none.

    A subclass of ``EngineDelegate`` names its options so: ``options: MyOptions``.
    """
    for cls in make.__mro__ if isinstance(make, type) else ():
        with contextlib.suppress(Exception):  # names that only a type checker knows
            annotation = inspect.get_annotations(cls).get(name)
            if isinstance(annotation, str):
                annotation = eval(annotation, vars(sys.modules[cls.__module__]))  # its own text
            if annotation is not None:
                return annotation
    return None
