"""Fill in templates: files of the package with words such as ``@MODEL@``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
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
    """Return ``text`` with ``words`` in place of each ``@WORD@``."""
    return _WORD.sub(lambda match: words[match[1]], text)
