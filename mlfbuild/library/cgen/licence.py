"""The first comment of generated C files: the licence of mlfbuild's text, and the generator.

``LICENCE`` starts every C file that mlfbuild generates or copies; ``report`` states the same licence in bills of
materials. It applies to mlfbuild's text: constants that come from a model are also under the model's licence.
"""

from __future__ import annotations

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n/* SPDX-FileCopyrightText: The mlfbuild authors */\n"


def notice(*lines: str) -> str:
    """Return the comment at the beginning of a generated C file, with ``lines`` about the file.

    Each of ``lines`` must be safe in a comment: ``comment_text`` makes it so for texts that come from models.
    """
    body = "".join(f" * {line}\n" for line in lines)
    return f"{LICENCE}/*\n{body} */"
