"""``mlfbuild project-api``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import show_result
from mlfbuild.core import UsageError


@verb("format")
@click.argument("folder", metavar="[DIR]", type=FILE, default=".")
@click.option("--read-fd", type=click.IntRange(0), metavar="N", help="Read requests from this pipe.")
@click.option("--write-fd", type=click.IntRange(0), metavar="N", help="Write replies to this pipe.")
@click.option("--debug", is_flag=True, help="Log every request and reply to stderr.")
def project_api(options: SharedOptions, folder: Path, read_fd: int | None, write_fd: int | None, debug: bool) -> None:
    """Write the server through which TVM drives firmware.

    The server, microtvm_api_server.py, implements microTVM's Project API. It is written to DIR, or to this folder.

    If DIR contains an mlfbuild.yml, microtvm_api_server.py builds, flashes and drives the firmware of that project.
    Otherwise, DIR becomes a template, from which TVM generates a project for each archive:
    `tvmc micro create-project PROJECT MODEL.tar template --template-dir DIR`.

    The server runs this command with --read-fd and --write-fd.
    """
    from mlfbuild.usecases.project_api import serve_folder, write_server

    # Without pipes, a person runs the command; the server passes both.
    if read_fd is None and write_fd is None:
        path = write_server(folder)
        is_project = (folder / "mlfbuild.yml").is_file()
        value = {"written": path, "template": not is_project}
        show_result(options, value, f"{path}: {'server of the project' if is_project else 'template'}")
        return
    if read_fd is None or write_fd is None:
        raise UsageError.needs_another(
            "--read-fd" if write_fd is None else "--write-fd",
            "requests and replies need a pipe each",
            f"add {'--write-fd' if write_fd is None else '--read-fd'}",
        )
    logging.basicConfig(level=logging.DEBUG if debug else logging.INFO, format="%(message)s")
    serve_folder(folder, read_fd, write_fd)
