"""Refuse modules whose archive does not record their inputs and outputs."""

from __future__ import annotations

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import Module


def check_described(module: Module) -> None:
    """Raise ``UnsupportedModelError``, which names what would record them, if inputs or outputs are unknown."""
    missing = [kind for kind, tensors in (("inputs", module.inputs), ("outputs", module.outputs)) if not tensors]
    if missing:
        relay = "the Relay text does not determine them" if module.source_text else "there is no Relay text"
        raise UnsupportedModelError(
            "module-without-ports",
            place=module.name,
            reason=f"the archive does not record types and sizes of the {' and '.join(missing)}: "
            f"metadata.json lacks them, as in exports of TVM before 0.11, and {relay}",
            hint=f"add `{'` and `'.join(missing)}` to memory.functions.main[0] in metadata.json, such as "
            '{"x": {"dtype": "int8", "size": 490}}, or the Relay text of the export with its types',
        )
