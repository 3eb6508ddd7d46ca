"""The pages of ``docs/reference/``, each made from the code that it is about.

``PAGES`` has a function a page, which returns its Markdown: the same for the same code, no dates, no paths.
``pytest tests/docs/test_reference.py --update-golden`` writes them, and without the option fails where one is old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlfbuild_reference.c_header import c_interface_page
from mlfbuild_reference.cmake import cmake_page
from mlfbuild_reference.command_line import command_line_page
from mlfbuild_reference.project_file import project_file_page
from mlfbuild_reference.scons import scons_page

PAGES: Mapping[str, Callable[[], str]] = {
    "project-file.md": project_file_page,
    "command-line.md": command_line_page,
    "scons.md": scons_page,
    "cmake.md": cmake_page,
    "c-interface.md": c_interface_page,
}
"""By the file's name."""
