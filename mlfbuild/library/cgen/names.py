"""Turn names of tensors into C identifiers, and any text into part of a C comment.

Names in model files are untrusted. A member of the C interface's structs keeps letters, digits and underscores, as in
TVM's header. If the result is not a valid identifier or is reserved, an underscore is added.
"""

from __future__ import annotations

import re

from mlfbuild.core import is_reserved_in_c
from mlfbuild.library import sanitize_name


def member_name(tensor_name: str) -> str:
    """Return the C identifier of the tensor ``tensor_name``: each byte except letters and digits becomes ``_``.

    An empty name becomes ``unnamed``. A name that starts with a digit gets ``_`` in front; a reserved word gets ``_``
    at its end, and so does ``workspace``, because its size macro would equal the arena's.
    """
    text = sanitize_name(tensor_name) or "unnamed"
    if text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if is_reserved_in_c(text) or text.lower() == "workspace" else text


def comment_text(text: str, longest: int = 100) -> str:
    """Return ``text`` for a C comment: other than harmless characters become ``_``, and at most ``longest`` remain."""
    # Without * and \, a comment cannot end, nest or continue on the next line.
    harmless = re.sub(r"[^0-9A-Za-z_./:;,()\[\]=+@ -]", "_", text)
    return harmless if len(harmless) <= longest else f"{harmless[: longest - 3]}..."
