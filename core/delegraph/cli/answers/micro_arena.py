"""Prints the estimate of TensorFlow Lite Micro's arena."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, print_paragraph, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.micro.estimate import ArenaEstimate


def print_micro(out: Console, estimate: ArenaEstimate) -> None:
    """Print the arena's parts, and the operators that TFLM lacks or whose memory is unknown."""
    heading(out, "TensorFlow Lite Micro")
    lacks = estimate.unsupported_operators
    least = "at least" if estimate.is_least else ""
    parts = [
        ("tensors and scratch buffers (head)", estimate.head_bytes, least or "exact"),
        ("variables and structures (tail)", estimate.tail_bytes, "estimated"),
        ("free, to plan in", estimate.free_bytes, "estimated"),
        ("arena", estimate.total_bytes, least or f"+- {estimate.uncertainty_bytes:,}"),
    ]
    rows = [
        (part, f"{count:,}", "none: see below" if lacks else accuracy)
        for part, count, accuracy in parts
        if count or part != "free, to plan in"
    ]
    print_table(out, ("part", "bytes", "accuracy"), rows, right=("bytes",))
    print_paragraph(out, f"assumes {estimate.assumes}")
    if lacks:
        print_paragraph(
            out,
            f"TFLM cannot run the model: it has no {', no '.join(lacks)}; the sizes are what it "
            "would need if it had",
        )
    if estimate.unknown_operators:
        out.print(f"  scratch memory unknown: {', '.join(estimate.unknown_operators)}")
