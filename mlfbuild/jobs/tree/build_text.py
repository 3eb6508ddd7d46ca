"""Render the build files of trees and folders, and check the names that every kind of build file must contain.

The text of a build file is a template of Jinja in ``templates``, named after the generated file: ``fragment.*`` are the
files of one tree, ``target.*`` those of a target's folder, and ``dependency.*`` those of a required library.
``head.*``, ``languages.cmake``, ``device.*`` and ``module.SConscript`` are parts that templates include. Blocks in a
line of their own leave no line behind, so that a template shows the line structure of what it makes.

Rendered texts are kept in the user's cache, under the hash of all that they are made from. A build with nothing to do
compares each file with the text that it should have: without the cache, a third of its time would be Jinja's.

Values are names and paths that were checked before (``check_path``, ``check_target_name``) or that a filter quotes, so
that nothing in an archive, which is untrusted, can end a string or start a command.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, cached_text, sha256, text_templates
from mlfbuild.library import LazyBytes, chunks

if TYPE_CHECKING:
    from jinja2 import Environment

FRAGMENT = "mlf.cmake"
# Names and paths that need no quoting in CMake, Make, Ninja and SCons. A list of what is allowed, because each of these
# languages has other characters that end a string or start a command.
_TARGET_NAME = re.compile(r"[A-Za-z0-9_]+")
_PATH = re.compile(r"[A-Za-z0-9_./+ -]+")


def here(*paths: PurePosixPath | str) -> str:
    """Return ``paths``, relative to the fragment, as one quoted argument of a CMake command; several form a list.

    Raises ``InputFileError`` for a name that CMake, Ninja or Make would misread.
    """
    for path in paths:
        check_path(str(path))
    return f'"{";".join(f"${{CMAKE_CURRENT_LIST_DIR}}/{path}" for path in paths)}"'


def here_in_build(path: PurePosixPath | str) -> str:
    """Return the include folder ``path`` for this build only; installed targets have another one.

    CMake does not export targets whose include folders are in the source tree. Raises as ``here``.
    """
    check_path(str(path))
    return f'"$<BUILD_INTERFACE:${{CMAKE_CURRENT_LIST_DIR}}/{path}>"'


def lines(arguments: Iterable[str]) -> str:
    """Return ``arguments`` on one indented line each."""
    return "".join(f"  {argument}\n" for argument in arguments)


def quoted(text: str) -> str:
    """Return ``text``, which must not contain line breaks, as one quoted argument of a CMake command."""
    return '"' + re.sub(r'([\\"$;])', r"\\\1", text) + '"'


def check_path(path: str) -> None:
    """Raise ``InputFileError`` for a file name that CMake, Ninja or Make would misread."""
    if not _PATH.fullmatch(path):
        reason = "the name of this file in the archive cannot be written in build files"
        hint = "rename the file and export again"
        raise InputFileError("file-name-not-buildable", place=ascii(path), reason=reason, hint=hint)


def check_target_name(name: str) -> None:
    """Raise ``InputFileError`` if ``name`` cannot be part of a target's name and of a C symbol."""
    if not _TARGET_NAME.fullmatch(name):
        reason = "the name of this module cannot be the name of a build target"
        hint = "use letters, digits and _"
        raise InputFileError("module-name-not-buildable", place=ascii(name), reason=reason, hint=hint)


def in_quotes(text: str) -> str:
    """Return ``text`` in double quotes; paths of a ``Part`` contain no quotes or backslashes."""
    return f'"{text}"'


def python_list(words: Iterable[str], indent: int = 0) -> str:
    """Return ``words`` as a list of Python: one line each, ``indent`` columns deep, if there are several."""
    texts = ['"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words]
    if len(texts) < 2:
        return f"[{''.join(texts)}]"
    return "[\n" + "".join(f"{' ' * indent}    {text},\n" for text in texts) + " " * indent + "]"


def make_quoted(option: str) -> str:
    """Return ``option`` for a recipe of Make: quoted for the shell if it needs that, with ``$`` and ``#`` escaped."""
    text = option.replace("'", "'\\''").replace("$", "$$").replace("#", "\\#")
    return text if re.fullmatch(r"[\w./=,+:-]*", option) else f"'{text}'"


def rendered(template: str, **values: object) -> str:
    """Return the text of ``templates/<template>`` with ``values``, of which those with attributes are dataclasses.

    The text is taken from the user's cache if this mlfbuild rendered the template with equal values before. Raises
    ``InputFileError`` for a path that build files cannot contain, if the template has it checked.
    """
    made_from = json.dumps([template, values], default=_as_json)
    return cached_text([made_from.encode()], lambda: _environment().get_template(template).render(values))


def _as_json(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (bytes, LazyBytes)):
        return sha256(chunks(value))
    return [type(value).__qualname__, vars(value)]


@functools.cache
def _environment() -> Environment:
    return text_templates(
        Path(__file__).parent / "templates",
        all_here=lambda paths: here(*paths),
        cmake_quoted=quoted,
        here=here,
        here_in_build=here_in_build,
        in_parentheses=lambda name: f"$({name})",
        in_quotes=in_quotes,
        json=json.dumps,
        make_quoted=make_quoted,
        prefixed=lambda name, prefix: f"{prefix}{name}",
        python_list=python_list,
        variable=lambda name, variable: f"$({variable}_{name})",
    )
