"""Fill in templates: files of the package with words such as ``@MODEL@``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_TEMPLATES = _PACKAGE / "templates"
_WORD = re.compile(r"@([A-Z_]+)@")


def filled(template: str, **words: str) -> str:
    """Return the text of ``template`` (``cmake/CMakeLists.txt``) with ``words`` in place of each ``@WORD@``.

    A line that contains only a word whose text is empty is removed.
    """
    lines = []
    for line in (_TEMPLATES / template).read_text(encoding="utf-8").splitlines():
        alone = _WORD.fullmatch(line.strip())
        if alone and not words[alone[1]]:
            continue
        lines.append(worded(line, words))
    return "\n".join(lines).rstrip("\n") + "\n"


def worded(text: str, words: Mapping[str, str]) -> str:
    """Return ``text`` with ``words`` in place of each ``@WORD@``.

    Raises ``KeyError`` for a word without a text: templates and callers belong together.
    """
    return _WORD.sub(lambda match: words[match[1]], text)


def runtime_text(name: str) -> str:
    """Return the file ``name`` of ``mlfbuild/runtime``."""
    return (_PACKAGE / "runtime" / name).read_text(encoding="utf-8")


def project_api_server() -> str:
    """Return the Project API server, which is the same in every folder."""
    return (_TEMPLATES / "project-api/microtvm_api_server.py.in").read_text(encoding="utf-8")
