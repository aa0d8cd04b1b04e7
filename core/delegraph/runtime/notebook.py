"""Text and HTML forms of an interpreter, for one line and for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delegraph.delegation.html_tables import html_table

if TYPE_CHECKING:
    from delegraph.delegation.placement import Placement
    from delegraph.runtime.session import Session


class NotebookView:
    """Base class of ``Interpreter`` with its text and HTML forms."""

    if TYPE_CHECKING:
        _session: Session | None

        @property
        def placement(self) -> Placement: ...  # noqa: D102 - Interpreter documents it
        def get_input_details(self) -> list[dict[str, Any]]: ...  # noqa: D102 - and these
        def get_output_details(self) -> list[dict[str, Any]]: ...  # noqa: D102

    def __repr__(self) -> str:
        session = getattr(self, "_session", None)
        return f"<{type(self).__name__} {'that is closed' if session is None else session}>"

    def _repr_html_(self) -> str:
        """Return inputs, outputs and the placement."""
        if getattr(self, "_session", None) is None:
            return html_table(repr(self), (), ())
        tensors = [("input", details) for details in self.get_input_details()]
        tensors += [("output", details) for details in self.get_output_details()]
        rows = [(kind, *_tensor(details)) for kind, details in tensors]
        columns = ("", "name", "type", "shape", "scale", "zero point")
        return html_table(repr(self), columns, rows) + self.placement._repr_html_()


def _tensor(details: dict[str, Any]) -> tuple[object, ...]:
    scale, zero_point = details["quantization"]
    quantized = (float(scale), int(zero_point)) if scale else (None, None)
    shape = details["shape_signature"].tolist()
    return (details["name"], details["dtype"].__name__, shape, *quantized)
