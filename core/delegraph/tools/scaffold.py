"""Writes the files of a new delegate or operator package, ready to install and test.

The folder ``templates/`` has templates that several kinds of projects share; its subfolders have
templates of a single kind. :meth:`Project.words` has the values of ``$name`` and other words in
templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.resources import files
from pathlib import Path
from string import Template

from packaging.utils import canonicalize_name
from packaging.version import Version

from delegraph.errors import ArgumentError
from delegraph.plugins.plugin_set import PluginSet
from delegraph.plugins.specs import RESERVED_NAMES

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.]+[A-Za-z0-9]+)*")
_PREFIX = "delegraph-"

_OWN_NAMES = ("core", "delegraph", "litert", "litert2")
"""Names that commands and tables use for Delegraph's kernels and for runtimes."""

UNARY = {
    "ABS": "np.absolute",
    "CEIL": "np.ceil",
    "COS": "np.cos",
    "EXP": "np.exp",
    "FLOOR": "np.floor",
    "LOG": "np.log",
    "NEG": "np.negative",
    "SIN": "np.sin",
    "SQRT": "np.sqrt",
    "SQUARE": "np.square",
    "TANH": "np.tanh",
}
BINARY = {"ADD": "np.add", "DIV": "np.divide", "MUL": "np.multiply", "SUB": "np.subtract"}
OPERATORS = UNARY | BINARY
"""Mapping from each operator that a project can start with to its NumPy function on floats."""

_ACTIVATIONS = ', activations=["RELU", "RELU6"]'
"""Text of the activations in claims of :data:`BINARY` operators; unary operators have none."""

Files = Mapping[str, tuple[str, ...]]
"""Mapping from a file's path in the project to the templates that are joined to its text."""

_EVERY: Files = {
    ".github/workflows/publish.yml": ("publish.yml",),
    ".github/workflows/tests.yml": ("workflow.yml",),
    ".gitignore": ("gitignore",),
    "pyproject.toml": ("pyproject.toml",),
    "src/{package}/__init__.py": ("__init__.py",),
    "src/{package}/py.typed": ("py.typed",),
}
_DELEGATE: Files = {
    **_EVERY,
    "src/{package}/options.py": ("options.py",),
    "src/{package}/plugin.py": ("plugin.py",),
    "tests/conftest.py": ("conftest.py",),
    "tests/test_conformance.py": ("test_conformance.py",),
    "tests/test_delegate.py": ("test_delegate.py",),
}
_ENGINE: Files = {
    **_DELEGATE,
    "README.md": ("README.md", "engine/{engine}/README.md", "README_end.md"),
    "src/{package}/delegate.py": (
        "engine/delegate_head.py",
        "engine/{engine}/claims.py",
        "engine/delegate_class.py",
    ),
    "src/{package}/engine.py": ("engine/{engine}/engine.py",),
    "tests/conftest.py": ("engine/conftest.py",),
    "tests/test_engine.py": ("engine/test_engine.py",),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of project that can be generated.

    Attributes:
        description: description of the distribution on one line, in which ``$`` words are replaced.
        files: files of the project, with their templates.
        is_delegate: whether the project offers a delegate.
    """

    description: str
    files: Files
    is_delegate: bool = True


KINDS = {
    "kernel": Kind(
        "A delegate for $operators_text",
        {
            **_DELEGATE,
            "README.md": ("README.md", "kernel/README.md", "README_end.md"),
            "src/{package}/delegate.py": ("kernel/delegate.py",),
        },
    ),
    "engine": Kind("A delegate that hands $operators_text to $engine", _ENGINE),
    "compiler": Kind(
        "A delegate that hands $operators_text to $engine, also ahead of time",
        {
            **_ENGINE,
            "README.md": (
                "README.md",
                "compiler/README.md",
                "engine/{engine}/README.md",
                "README_end.md",
            ),
            "src/{package}/plugin.py": ("plugin.py", "compiler/hook.py"),
            "tests/test_compiler.py": ("compiler/test_compiler.py",),
        },
    ),
    "custom-op": Kind(
        "The custom operator $prefix",
        {
            **_EVERY,
            "README.md": ("custom_op/README.md", "README_end.md"),
            "src/{package}/operator.py": ("custom_op/operator.py",),
            "src/{package}/plugin.py": ("custom_op/plugin.py",),
            "tests/test_operator.py": ("custom_op/test_operator.py",),
        },
        is_delegate=False,
    ),
}
"""Mapping from a value of ``delegraph new --template`` to the kind of project."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine for which projects can be generated.

    Attributes:
        name: name of the engine as part of a sentence.
        requirements: distributions that the project needs for the engine.
        modules: patterns of the engine's modules without type hints.
        operators: operators that the project's own tests try; empty means the project's operators.
    """

    name: str
    requirements: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()


ENGINES = {
    "custom": Engine("an engine"),
    "onnxruntime": Engine(
        "ONNX Runtime",
        ("onnx>=1.16", "onnxruntime>=1.17"),
        ("onnx.*", "onnxruntime.*"),
        ("ADD", "MUL"),
    ),
    "openvino": Engine("OpenVINO", ("openvino>=2025.0",), ("openvino.*",), ("ABS", "EXP")),
}
"""Mapping from a value of ``delegraph new --engine`` to the engine."""


@dataclass(frozen=True, slots=True)
class Project:
    """A new distribution that the scaffold writes.

    Attributes:
        name: name of the delegate as users type it, such as ``my_chip``.
        operators: names of :data:`OPERATORS` that the delegate starts with.
        template: name of the kind, a key of :data:`KINDS`.
        engine: name of the engine, a key of :data:`ENGINES`; only for kinds of projects that use an
            engine.
    """

    name: str
    operators: tuple[str, ...]
    template: str = "kernel"
    engine: str = "custom"

    @classmethod
    def of(
        cls, name: str, operators: Sequence[str], template: str = "kernel", engine: str = "custom"
    ) -> Project:
        """Return the project for a typed name: ``delegraph-My.Chip`` means ``my_chip``.

        Raises:
            ArgumentError: a package or delegate cannot have the name, a project cannot start with
                an operator, or the template or the engine does not exist.
        """
        if engine not in ENGINES:
            raise ArgumentError(f"engine is {engine!r}, expected one of {', '.join(ENGINES)}")
        if template not in KINDS:
            raise ArgumentError(f"template is {template!r}, expected one of {', '.join(KINDS)}")
        if not _NAME.fullmatch(name):
            raise ArgumentError(
                f"name is {name!r}, expected a letter, then letters and digits with single '-', "
                "'_' or '.' between"
            )
        stem = canonicalize_name(name).removeprefix(_PREFIX)
        if stem in RESERVED_NAMES or stem in _OWN_NAMES or not stem[0].isalpha():
            raise ArgumentError(f"name is {name!r}, which no delegate can have: choose another")
        for operator in operators:
            if operator not in OPERATORS:
                raise ArgumentError(
                    f"a project cannot start with operator {operator!r}, only with: "
                    + ", ".join(sorted(OPERATORS))
                )
        if not operators:
            raise ArgumentError("a project starts with at least one operator")
        tried = ENGINES[engine].operators or tuple(dict.fromkeys(operators))
        return cls(stem.replace("-", "_"), tried, template, engine)

    @property
    def distribution(self) -> str:
        """Name for pip, such as ``delegraph-my-chip``."""
        return _PREFIX + self.name.replace("_", "-")

    @property
    def package(self) -> str:
        """Name of the Python package, such as ``delegraph_my_chip``."""
        return self.distribution.replace("-", "_")

    @property
    def kind(self) -> Kind:
        """Kind of the project."""
        return KINDS[self.template]

    @property
    def title(self) -> str:
        """Name in the style of classes and custom operators, such as ``MyChip``."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    def words(self) -> dict[str, str]:
        """Return a mapping from each ``$word`` of the templates to its text."""
        release = ".".join(map(str, Version(version("delegraph")).release))
        names = {
            "name": self.name,
            "distribution": self.distribution,
            "package": self.package,
            "prefix": self.title,
            "operators_text": "partitions"
            if ENGINES[self.engine].modules
            else _listed(self.operators),
            "engine": ENGINES[self.engine].name,
            "requirement": f"delegraph~={release}",
            "test_requirement": f"delegraph[testing]~={release}",
        }
        description = Template(self.kind.description).substitute(names)
        words = {**names, **self._operator_words(), **self._hook_words(), **self._engine_words()}
        return {**words, "description": description}

    def _engine_words(self) -> dict[str, str]:
        engine = ENGINES[self.engine]
        untyped = f"""
[[tool.mypy.overrides]]
module = {json.dumps(engine.modules)}
ignore_missing_imports = true
"""
        return {
            "engine_requirements": "".join(f', "{text}"' for text in engine.requirements),
            "untyped": untyped if engine.modules else "",
        }

    def _operator_words(self) -> dict[str, str]:
        operands = {op: 2 if op in BINARY else 1 for op in self.operators}
        features = ["dynamic-shapes", "empty", "many-dims", "scalar"]
        if 2 in operands.values():
            features.insert(0, "broadcast")
        return {
            "first": self.operators[0],
            "first_operands": str(operands[self.operators[0]]),
            "compute": "\n".join(f'    "{op}": {OPERATORS[op]},' for op in self.operators),
            "operators": "\n".join(f'    "{op}",' for op in self.operators),
            "operands": "\n".join(f'    "{op}": {count},' for op, count in operands.items()),
            "features": ", ".join(f'"{feature}"' for feature in features),
            "activations": _ACTIVATIONS if 2 in operands.values() else "",
        }

    def _hook_words(self) -> dict[str, str]:
        """Return the imports of this kind's hooks, and a sentence for the README."""
        imports = ["DelegateSpec", "hookimpl"]
        if self.template == "compiler":
            imports += ["CompilerSpec", "engine_compiler"]
        user = f"`--delegate {self.name}`" if self.kind.is_delegate else "A model with the operator"
        return {
            "imports": ", ".join(sorted(imports)),
            "wherever": f"{user} works wherever it is installed.",
        }

    def require_new(self) -> None:
        """Check that no distribution of the project's name is installed.

        Raises:
            ArgumentError: there is one, which pip would replace.
        """
        try:
            found = distribution(self.distribution)
        except PackageNotFoundError:
            return
        text = f"{self.distribution} {found.version} is installed, and pip would replace it"
        raise ArgumentError(f"{text}: choose another name, or uninstall it first")

    def clashes(self, plugins: PluginSet) -> list[str]:
        """Return texts about installed delegates and operators that have the same name."""
        if self.kind.is_delegate:
            what = f"delegate {self.name!r}"
            providers = [o.plugin for o in plugins.offers() if o.spec.name == self.name]
        else:
            what = f"operator {self.title!r}"
            providers = plugins.custom_op_providers().get(self.title, [])
        return [
            f"{what} is provided by {plugin}, too; where both are installed, users have to write "
            f"the distribution's name in front, as in {self.distribution}:{self.name}"
            for plugin in providers
        ]


def write_project(project: Project, folder: Path) -> list[Path]:
    """Write all files of a project into *folder*, which may be new, and return their paths, sorted.

    Raises:
        ArgumentError: *folder* is a file, is not empty, or cannot be written.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            raise ArgumentError(f"folder {str(folder)!r} is not empty; nothing was written")
        return [
            _write(folder / path.format(package=project.package), project, templates)
            for path, templates in sorted(project.kind.files.items())
        ]
    except OSError as error:
        raise ArgumentError(f"folder {str(folder)!r} cannot be written: {error}") from error


def _write(path: Path, project: Project, templates: Sequence[str]) -> Path:
    folder = files("delegraph.tools") / "templates"
    names = (name.format(engine=project.engine) for name in templates)
    text = "".join((folder / f"{name}.template").read_text("utf-8") for name in names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Template(text).substitute(project.words()), encoding="utf-8", newline="\n")
    return path


def _listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    >>> _listed(["ADD", "MUL", "SUB"])
    'ADD, MUL and SUB'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
