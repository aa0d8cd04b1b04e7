"""Options that request profiles; the command gets a ``ProfileRequest``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from delegraph.cli.options.kinds import Command, joined, switch_option, with_options_added
from delegraph.cli.options.output_files import output_option
from delegraph.errors import printable

if TYPE_CHECKING:
    from delegraph.tools.profiling.recording import Recording

PROFILE_OPTIONS = ("op_profile", "op_profile_csv", "trace", "speedscope", "node_data")
"""Python names of the options, which are the attributes of a :class:`ProfileRequest`."""


@dataclass(frozen=True)
class ProfileRequest:
    """Requested outputs of a profile.

    Attributes:
        op_profile: whether to print tables.
        op_profile_csv: path of a CSV file for the times of all nodes.
        trace: path of a file for Chrome trace events.
        speedscope: path of a file for speedscope.
        node_data: path of a folder for Model Explorer's node data.
    """

    op_profile: bool
    op_profile_csv: str | None
    trace: str | None
    speedscope: str | None
    node_data: str | None

    @property
    def is_any(self) -> bool:
        """Whether any output of a profile is requested."""
        files = (self.op_profile_csv, self.trace, self.speedscope, self.node_data)
        return self.op_profile or any(path is not None for path in files)

    def write_files(self, recording: Recording) -> None:
        """Write the requested files of a profile.

        Raises:
            UsageError: a file cannot be written.
        """
        from delegraph.tools.profiling.chrome_trace import write_chrome_trace
        from delegraph.tools.profiling.node_files import LATENCY, write_node_files
        from delegraph.tools.profiling.op_profile import profile_of
        from delegraph.tools.profiling.speedscope import write_speedscope

        def write_csv(path: str, found: Recording) -> None:
            profile = profile_of(found)
            if not profile.sections:
                _note_no_times(Path(path))
                return
            Path(path).write_text(profile.to_csv(), encoding="utf-8")

        def write_nodes(path: str, found: Recording) -> None:
            times = Path(path, LATENCY)
            if times not in write_node_files(path, found):
                _note_no_times(times)

        writers: list[tuple[str, str | None, Callable[[str, Recording], object]]] = [
            ("--op-profile-csv", self.op_profile_csv, write_csv),
            ("--trace", self.trace, write_chrome_trace),
            ("--speedscope", self.speedscope, write_speedscope),
            ("--node-data", self.node_data, write_nodes),
        ]
        for option, path, write in writers:
            if path is None:
                continue
            try:
                write(path, recording)
            except OSError as error:
                reason = error.strerror or error
                raise click.UsageError(f"{option} {path!r}: {reason}") from error


def _note_no_times(path: Path) -> None:
    """Print why the file *path* with the times of nodes is not written."""
    click.echo(f"note: {printable(str(path))} is not written: no node tells its time", err=True)


def op_profile_options(command: Command) -> Command:
    """Add the profile options; the command gets a :class:`ProfileRequest` as *profile*."""
    timeline = "Write the timeline, for https://www.speedscope.app."
    options = [
        switch_option("--op-profile", "Show how long each operator takes, in further runs."),
        output_option("--op-profile-csv", "FILE", "Write the times of all nodes as CSV."),
        output_option("--trace", "FILE", "Write Chrome trace events, for https://ui.perfetto.dev."),
        output_option("--speedscope", "FILE", timeline),
        click.option(
            "--node-data",
            type=click.Path(file_okay=False),
            metavar="FOLDER",
            help="Write facts of each node for Model Explorer.",
        ),
    ]
    return with_options_added(joined(command, PROFILE_OPTIONS, "profile", ProfileRequest), options)
