"""The user's choice of which delegates run in separate processes, and of their time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from delegraph.errors import ArgumentError
from delegraph.lazy_dataclass import dataclass
from delegraph.runtime.arguments import check_choice, check_seconds

if TYPE_CHECKING:
    from delegraph.plugins.specs import DelegateSpec, Isolate


@dataclass(frozen=True, slots=True)
class Isolation:
    """Whether delegates run in separate processes, and the time limit of an invoke there.

    Attributes:
        isolate: ``"process"`` runs each delegate in a separate process, ``"none"`` in this process.
            None follows the delegate's spec.
        timeout: seconds of an invoke after which the process is ended. None means the limit in the
            delegate's spec, or no limit.

    Raises:
        ArgumentError: *isolate* is another word, or *timeout* is not positive.
    """

    isolate: Isolate | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.isolate is not None:
            from delegraph.plugins.specs import Isolate  # lazy: most interpreters have no delegate

            check_choice("isolate", self.isolate, [None, *get_args(Isolate)])
        check_seconds("timeout", self.timeout)

    def of(self, spec: DelegateSpec) -> Isolation:
        """Return the isolation of one delegate: the user's settings, else those of *spec*."""
        return Isolation(
            self.isolate or spec.isolate,
            spec.timeout if self.timeout is None and self.isolate != "none" else self.timeout,
        )

    @property
    def is_wanted(self) -> bool:
        """Whether the delegate must run in a separate process."""
        return self.isolate == "process"

    def require_no_timeout(self, what: object) -> None:
        """Raise an error if a time limit is set for *what*, a delegate that runs in this process.

        Raises:
            ArgumentError: *timeout* is set.
        """
        if self.timeout is not None:
            raise ArgumentError(
                f"timeout={self.timeout:g} needs isolate='process' for {what}: only a delegate in "
                "a separate process can be stopped when it hangs"
            )


AS_SPECIFIED = Isolation()
"""Choice that each delegate's spec decides about its isolation."""
