"""Templates: data files of the package with words between two @."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
_WORD = re.compile(r"@([A-Z_]+)@")


def filled(template: str, **words: str) -> str:
    """Return the text of ``template`` (``cmake/CMakeLists.txt``) with ``words`` for its ``@WORD@``.

    A line that was nothing but one word, and has nothing for it, goes.
    """
    lines = []
    for line in (_TEMPLATES / template).read_text(encoding="utf-8").splitlines():
        alone = _WORD.fullmatch(line.strip())
        if alone and not words[alone[1]]:
            continue
        lines.append(worded(line, words))
    return "\n".join(lines).rstrip("\n") + "\n"


def worded(text: str, words: Mapping[str, str]) -> str:
    """Return ``text`` with ``words`` for its ``@WORD@``."""
    return _WORD.sub(lambda match: words[match[1]], text)
