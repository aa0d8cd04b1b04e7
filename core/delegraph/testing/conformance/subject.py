"""Subjects: a delegate under test, with a factory and its claims."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.delegate import Delegate
from delegraph.delegation.node_traits import NodeTraits
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.options import split_text
from delegraph.plugins.plugin_set import installed
from delegraph.plugins.specs import DelegateSpec
from delegraph.runtime.delegates.requested_delegates import AnyDelegate, as_delegate
from delegraph.testing.conformance.run_reports import phase_begins
from delegraph.testing.conformance.sampling import FULL, Effort
from delegraph.testing.operator_case import OperatorCase

CreateDelegate = Callable[[Mapping[str, object]], Delegate]
"""Function that returns a delegate with the given options."""

DECLARE = """\
delegate {name!r} declares no capabilities, so nothing can be checked. Add this to it, for what it
takes:

    def capabilities(self) -> Capabilities:
        return Capabilities(
            [Claim(["ADD", "SUB"], "FLOAT32", "activation", "broadcast")],
            tolerance={{"FLOAT32": Tolerance(relative=1e-6)}},
        )

or give the test class a ``capabilities`` attribute. The names of features are the keys of
delegraph.delegation.capabilities.FEATURES."""


@dataclass(frozen=True, eq=False)
class Identity:
    """Facts about a subject that can be sent to another process.

    Attributes:
        name: the delegate's name, as tests show it.
        operators: names of the operators in its claims, sorted.
        address: name or file of the delegate on the command line; empty if it has none.
        folder: folder in which models that show a failure are saved.
    """

    name: str
    operators: tuple[str, ...]
    address: str
    folder: Path


@dataclass(frozen=True, eq=False)
class Subject:
    """A delegate under test, with a factory and its claims.

    Attributes:
        name: the delegate's name, as tests show it.
        make: function that returns a new delegate object.
        capabilities: the delegate's claims.
        address: name or file of the delegate on the command line; empty if it has none.
        spec: the plugin's spec of the delegate; None if it is not installed.
        create: function that returns a delegate with given options; None if no options are tried.
        cases: the author's own cases, beside the cases of the kit; iterated once for each operator.
        folder: folder in which models that show a failure are saved.
        effort: numbers of models that are tried.
    """

    name: str
    make: Callable[[], Delegate]
    capabilities: Capabilities
    address: str = ""
    spec: DelegateSpec | None = None
    create: CreateDelegate | None = None
    cases: Iterable[OperatorCase] = ()
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir(), "delegraph"))
    effort: Effort = FULL

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators in any of the delegate's claims, sorted."""
        return tuple(sorted({op for claim in self.capabilities.claims for op in claim.operators}))

    @property
    def identity(self) -> Identity:
        """Facts about the subject that can be sent to another process."""
        return Identity(self.name, self.operators, self.address, self.folder)

    def claims(self, forms: Iterable[NodeTraits], features: frozenset[str]) -> bool:
        """Whether the delegate's claims cover an operator of the given forms and features.

        Args:
            forms: types, version and activation of each node of the operator.
            features: features that the model shows, such as ``broadcast``.
        """
        return all(self.capabilities.covers(form, features) for form in forms)


def require_claims(subject: Subject) -> None:
    """Check that the delegate declares claims; the error message shows how to declare them."""
    if not subject.capabilities.claims:
        raise AssertionError(DECLARE.format(name=subject.name))


def subject_of(
    make: Callable[[], AnyDelegate], capabilities: Capabilities | None = None, address: str = ""
) -> Subject:
    """Return the description of a delegate under test, made from a class or function.

    Args:
        make: a class or function without arguments.
        capabilities: the delegates' claims; None means the claims of their ``capabilities()``.
        address: name of the delegates on the command line; empty if they are not installed.
    """
    phase_begins(address, "it was loaded and made", imports=True)
    first = as_delegate(make())
    phase_begins(address, "it was asked for its name")
    name = first.name()
    phase_begins(address, "it was asked what it claims")
    claimed = first.capabilities() if capabilities is None else capabilities
    return Subject(name, lambda: as_delegate(make()), claimed, address)


def is_file(address: str) -> bool:
    """Whether *address* is that of a delegate in a Python file: ``mine.py``, ``mine.py:key=1``."""
    return address.partition(":")[0].endswith(".py")


def installed_subject(address: str, capabilities: Capabilities | None = None) -> Subject:
    """Return the description of a delegate under test that is installed, or in a Python file.

    Args:
        address: ``name``, ``dist:name`` or ``FILE.py``, also with options, as on the command line.
        capabilities: the delegate's claims; None means those of its ``capabilities()``.

    Raises:
        PluginError: the delegate is not installed, or cannot be used.
    """
    if is_file(address):
        return subject_of(lambda: address, capabilities, address)
    parsed = DelegateAddress.parse(address)
    offer = installed().find(parsed)
    given = split_text(parsed.name, parsed.options)
    subject = subject_of(lambda: address, capabilities, address)
    return replace(
        subject,
        spec=offer.spec,
        create=lambda options: installed().create_delegate(offer.address, {**given, **options}),
    )
