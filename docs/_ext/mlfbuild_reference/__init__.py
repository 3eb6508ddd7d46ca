"""Generate the pages of ``docs/reference/`` from the code that they describe.

``PAGES`` has a function per page that returns its Markdown. The same code gives the same text: no dates, no paths.
``make generate`` writes the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlfbuild_reference.command_line import command_line_page
from mlfbuild_reference.microcontrollers import microcontrollers_page
from mlfbuild_reference.project_file import project_file_page

PAGES: Mapping[str, Callable[[], str]] = {
    "project-file.md": project_file_page,
    "command-line.md": command_line_page,
    "microcontrollers.md": microcontrollers_page,
}
"""Functions that return a page, by its file name."""
