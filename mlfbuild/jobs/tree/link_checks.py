"""Print the files of a target's folder with which builds without mlfbuild's tools check their links.

They are there if the target has budgets. Each runs ``mlfbuild report`` after a link, if mlfbuild is in ``PATH``, and
otherwise prints the command. An image over its budget is renamed, because Make, Ninja and SCons would take it for the
result of a link that did not fail.
"""

from __future__ import annotations

from collections.abc import Collection

from mlfbuild.jobs.tree.build_text import rendered

SCONS_CHECK = "mlf_budgets.py"
CMAKE_CHECK = "mlf_budgets.cmake"
_IN_CMAKE = {"zephyr", "esp-idf"}
"""The systems whose builds run a CMake script after a link."""


def link_check_files(systems: Collection[str]) -> dict[str, str]:
    """Return the files for a folder that is a package of ``systems``: path -> text."""
    return {
        SCONS_CHECK: rendered("mlf_budgets.py.txt"),
        **({CMAKE_CHECK: rendered(CMAKE_CHECK)} if _IN_CMAKE & {*systems} else {}),
    }
