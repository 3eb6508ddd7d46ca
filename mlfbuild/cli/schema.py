"""``mlfbuild schema``."""

from __future__ import annotations

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show_json
from mlfbuild.core import UsageError


@verb("format")
@click.option("--report", is_flag=True, help="Print the schema of `report --format json`.")
@click.option("--events", is_flag=True, help="Print the schema of lines on standard error.")
def schema(_options: SharedOptions, report: bool, events: bool) -> None:
    """Print the JSON Schema of the project file.

    Editors use it to complete and check mlfbuild.yml. With --events, print the schema of each line that --format json
    writes to standard error.
    """
    from mlfbuild.cli.output.events import event_schema
    from mlfbuild.usecases import project_schema, report_schema

    if report and events:
        raise UsageError.exclusive("--report and --events", "these are two schemas", "request one at a time")
    show_json(report_schema() if report else event_schema() if events else project_schema())
