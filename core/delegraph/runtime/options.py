"""Options of an interpreter, in groups: placement, limits, failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from delegraph.errors import ArgumentError, ArgumentTypeError
from delegraph.lazy_dataclass import dataclass, field, replace
from delegraph.runtime.arguments import (
    check_choice,
    check_count,
    check_seconds,
    checked_flag,
)

if TYPE_CHECKING:
    from delegraph.delegation.delegate import PartitionPolicy, StopRequest
    from delegraph.delegation.rules_file import Rules
    from delegraph.operators.numerics import Numerics
    from delegraph.plugins.specs import Isolate
    from delegraph.runtime.arguments import AnyPath
    from delegraph.runtime.isolation.isolation import Isolation

Requirement = Literal["full"]
"""Requirement for a placement: ``"full"`` means that every node has a delegate."""


_FLAGS = (
    "preserve_all_tensors",
    "disable_delegate_clustering",
    "disable_delegate_node_fusion",
    "force_delegate_node_profiling",
)
"""Flags that the official constructor has, too, with ``experimental_`` in front."""


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    """Rules about the nodes that delegates may, must or must not claim.

    Attributes:
        rules: nodes that delegates must or must not claim: a TOML file or ``PlacementRule``s.
        require: ``"full"`` raises an error if a node has no delegate after all delegates are
            applied.
        partitions: ``"measured"`` keeps only the partitions that save time.

    Raises:
        ArgumentError: a word is unknown.
    """

    rules: Rules | None = None
    require: Requirement | None = None
    partitions: PartitionPolicy = "largest"

    def __post_init__(self) -> None:
        check_choice("require", self.require, [None, *get_args(Requirement)])
        check_choice("partitions", self.partitions, ("largest", "measured"))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on memory, time and size, so that a hostile or broken model does no harm.

    Attributes:
        memory: maximal number of bytes of a subgraph's tensors, and of data read from the file
            other than constants. None means a limit in proportion to the file's size.
        time: seconds that each call may take: the constructor, allocating, changing delegates,
            invoking. None means no limit.
        tables: maximal number of operators, options and tensors in the file; None means a million.
        depth: maximal depth of nested subgraph calls; None means 50.
        weights_dir: folder, besides the model's own, whose files may hold constants.
        cancellation: stop request of a delegate's context, for an interpreter that a kernel uses.

    Raises:
        ArgumentError: a number is out of range, or both ``time`` and ``cancellation`` are given.
    """

    memory: int | None = None
    time: float | None = None
    tables: int | None = None
    depth: int | None = None
    cancellation: StopRequest | None = None
    weights_dir: AnyPath | None = None

    def __post_init__(self) -> None:
        check_count("Limits.memory", self.memory, "; it is a number of bytes")
        check_count("Limits.tables", self.tables)
        check_count("Limits.depth", self.depth)
        check_seconds("Limits.time", self.time)
        if self.time is not None and self.cancellation is not None:
            raise ArgumentError("Limits.time and Limits.cancellation are given, expected one")


OnFailure = Literal["raise", "fallback", "shadow"]


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """Reaction of an interpreter to the failure of a delegate, as the user chooses it.

    Attributes:
        on_failure: ``"raise"`` raises the error. ``"fallback"`` computes the partition's original
            nodes by Delegraph's kernels and records an incident. ``"shadow"`` does the same, and
            also recomputes a share of all invokes; a delegate that differs by more than its
            tolerance is quarantined: Delegraph's kernels compute its nodes from then on. None means
            ``"fallback"`` for delegates in separate processes, ``"raise"`` for others.
        validate: check the results of delegates for values that are not written, NaN, wrong shapes
            and integers out of range.
        shadow_share: share of invokes that ``"shadow"`` recomputes, 0 < share <= 1; the first
            invoke is always among them.
        isolate: whether delegates run in separate processes; see ``load_delegate``.
        timeout: seconds that an invoke of an isolated delegate may take.
        is_default: whether the policy is for the default delegate, whose first failure removes it
            and gives a warning.

    Raises:
        ArgumentError: a word is unknown, a share is out of range, or seconds are not positive.
        ArgumentTypeError: ``validate`` is no bool.
    """

    on_failure: OnFailure | None = None
    validate: bool = False
    shadow_share: float = 0.1
    isolate: Isolate | None = None
    timeout: float | None = None
    is_default: bool = False

    def __post_init__(self) -> None:
        if self.on_failure not in (None, *get_args(OnFailure)):
            known = ", ".join(map(repr, get_args(OnFailure)))
            raise ArgumentError(f"on_failure is {self.on_failure!r}, expected one of {known}")
        if not isinstance(self.validate, bool):
            raise ArgumentTypeError(f"validate is True or False, not {self.validate!r}")
        if not 0 < self.shadow_share <= 1:
            raise ArgumentError(f"shadow_share is {self.shadow_share}, expected 0 < share <= 1")
        if self.isolate is not None or self.timeout is not None:
            _ = self.isolation  # the property checks the names

    @property
    def isolation(self) -> Isolation:
        """Settings that say which delegates run in separate processes."""
        from delegraph.runtime.isolation.isolation import Isolation  # lazy: only delegates do

        return Isolation(self.isolate, self.timeout)

    def of(self, delegate: object, *, is_default: bool = False) -> FailurePolicy:
        """Return the policy for *delegate*, with a definite ``on_failure``.

        Args:
            delegate: the delegate.
            is_default: whether the delegate is applied by default; then its errors are never
                raised.
        """
        if is_default:
            kept: OnFailure = "shadow" if self.on_failure == "shadow" else "fallback"
            return replace(self, on_failure=kept, is_default=True)
        if self.on_failure is not None:
            return self
        from delegraph.delegation.delegate import Delegate  # lazy import: many models have none

        is_isolated = isinstance(delegate, Delegate) and delegate.is_isolated
        return replace(self, on_failure="fallback" if is_isolated else "raise")

    @property
    def needs_guard(self) -> bool:
        """Whether delegate nodes need a guard; the policy must have a definite ``on_failure``."""
        return self.validate or self.on_failure != "raise"


GROUPS = {"placement": PlacementPolicy, "limits": Limits, "failures": FailurePolicy}
"""Mapping from the argument of ``Interpreter`` for each group of options to the group's class."""

_EXAMPLES: dict[str, dict[str, Any]] = {
    "placement": {"require": "full"}, "limits": {"time": 2.5}, "failures": {"on_failure": "raise"},
}  # fmt: skip
"""Fields of each group that an error shows where the user gave none, by the group's argument."""

_WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "placement": {"require": get_args(Requirement), "partitions": ("largest", "measured")},
    "limits": {},
    "failures": {"on_failure": get_args(OnFailure), "isolate": ("process", "none")},
}
"""Words of each group's fields, by the group's argument and by field."""

PLACES = {
    "rules": ("placement", "rules"),
    "require": ("placement", "require"),
    "partition_policy": ("placement", "partitions"),
    "memory_limit": ("limits", "memory"),
    "time_limit": ("limits", "time"),
    "table_limit": ("limits", "tables"),
    "depth_limit": ("limits", "depth"),
    "cancellation": ("limits", "cancellation"),
    "weights_dir": ("limits", "weights_dir"),
    "on_failure": ("failures", "on_failure"),
    "validate": ("failures", "validate"),
    "shadow_share": ("failures", "shadow_share"),
    "isolate": ("failures", "isolate"),
    "timeout": ("failures", "timeout"),
}
"""Group and field of each option, by its name on the command line and as a deprecated keyword."""


OWN_RUNTIME_ONLY = ("partition_policy",)
"""Options that an official interpreter does not have."""


def in_groups(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the groups of *options*, by argument name; see :data:`PLACES`.

    >>> in_groups({"time_limit": 2.5})["limits"].time
    2.5
    """
    fields: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for option, value in options.items():
        group, name = PLACES[option]
        fields[group][name] = value
    return {group: cls(**fields[group]) for group, cls in GROUPS.items()}


def groups_of(
    placement: PlacementPolicy | None,
    limits: Limits | None,
    failures: FailurePolicy | None,
    more: dict[str, Any],
) -> dict[str, Any]:
    """Return the option groups by name, with deprecated keywords merged into their fields.

    Args:
        placement: argument of the constructor; None for the defaults.
        limits: argument of the constructor; None for the defaults.
        failures: argument of the constructor; None for the defaults.
        more: other keywords of the constructor; the deprecated ones are removed, with a warning
            each.

    Raises:
        ArgumentTypeError: a group is of another class; the message says what to write.
    """
    given = {"placement": placement, "limits": limits, "failures": failures}
    groups = {name: _checked_group(name, group) for name, group in given.items()}
    for option in [name for name in more if name in PLACES]:
        from delegraph.runtime.deprecation import warn_deprecated  # lazy: few programs need it

        group, field_name = PLACES[option]
        new = f"{group}={GROUPS[group].__name__}({field_name}=...)"
        warn_deprecated(f"Interpreter({option}=...)", new, stacklevel=4)
        groups[group] = replace(groups[group], **{field_name: more.pop(option)})
    return groups


def _checked_group(name: str, group: Any) -> Any:
    """Return the group of options for the argument *name*; its default if *group* is None."""
    cls = GROUPS[name]
    if group is None:
        return cls()
    if not isinstance(group, cls):
        fields = ", ".join(field for place, field in PLACES.values() if place == name)
        raise ArgumentTypeError(
            f"{name} is a {cls.__name__} with the fields {fields}, not {group!r}; "
            f"write {name}=delegraph.{cls.__name__}({_example(name, group)})"
        )
    return group


def _example(name: str, given: Any) -> str:
    """Arguments of the class of group *name*, with the value *given* where a field takes it.

    >>> _example("failures", "shadow"), _example("placement", "rules.toml")
    ("on_failure='shadow'", "'rules.toml'")
    """
    fields = _EXAMPLES[name]
    if isinstance(given, Mapping) and {*given} <= {*GROUPS[name].__annotations__}:
        fields = dict(given) or fields
    elif name == "placement" and str(given).endswith(".toml"):
        return repr(str(given))  # the file of rules
    elif isinstance(given, str):
        by_word = {word: {key: word} for key, words in _WORDS[name].items() for word in words}
        fields = by_word.get(given, fields)
    elif name == "limits" and type(given) in (int, float) and given > 0:
        fields = {"time": given}
    return ", ".join(f"{field}={value!r}" for field, value in fields.items())


def require_official(groups: Mapping[str, Any]) -> None:
    """Reject options in *groups*, by group name, that an official interpreter cannot have.

    Raises:
        ArgumentError: an official interpreter lacks one of the options.
    """
    for option in OWN_RUNTIME_ONLY:
        group, name = PLACES[option]
        if getattr(groups[group], name) != getattr(GROUPS[group](), name):
            what = f"{GROUPS[group].__name__}({name}=...)"
            raise ArgumentError(f"{what} needs delegraph.Interpreter: the official one has none")


@dataclass(frozen=True, slots=True)
class InterpreterOptions:
    """All options of an interpreter.

    Attributes:
        recommended_num_threads: number of threads that the user allows; -1 if not set.
        numerics: official kernels whose rounding is reproduced.
        preserve_all_tensors: keep every intermediate tensor; then each partition has one node.
        disable_delegate_clustering: partition in plan order instead of pulling nodes together.
        disable_delegate_node_fusion: one node in each partition.
        force_delegate_node_profiling: profile delegate nodes even if they profile their own nodes.
        placement: rules for the nodes that delegates get.
        limits: limits on memory, time and size.
        failures: reaction when a delegate fails.
        cache_dir: folder for partitions that delegates compile; None for the user's own folder.
    """

    recommended_num_threads: int
    numerics: Numerics
    preserve_all_tensors: bool
    disable_delegate_clustering: bool
    disable_delegate_node_fusion: bool
    force_delegate_node_profiling: bool = False
    placement: PlacementPolicy = field(default_factory=PlacementPolicy)
    limits: Limits = field(default_factory=Limits)
    failures: FailurePolicy = field(default_factory=FailurePolicy)
    cache_dir: AnyPath | None = None

    def __post_init__(self) -> None:
        """Check that the value of each option is one of its choices.

        Raises:
            ArgumentError: a value is not among the choices.
            ArgumentTypeError: a flag is neither True nor False.
        """
        for name in _FLAGS:
            checked_flag(f"experimental_{name}", getattr(self, name))
        check_choice("numerics", self.numerics, [None, "builtin", "reference"])

    @property
    def num_threads(self) -> int:
        """Number of threads that kernels may use, at least 1."""
        return max(self.recommended_num_threads, 1)
