"""The id of a module that another compiler generated, in the entry that is generated for it here.

Native modules have theirs in their own code.
"""

from __future__ import annotations

from mlfbuild import __version__
from mlfbuild.cgen import PARAMS_SECTION
from mlfbuild.library import Identity, Module, identities


def print_identity(module: Module) -> str:
    """Return the definition of the id; empty where nobody knows what the module was made from."""
    if not has_identity(module):
        return ""
    text = Identity(module.name, module.source_sha256, __version__)
    return "\n".join(
        [
            "/* Identifies the model in an image: `mlfbuild inspect <image>` prints it. */",
            f'__attribute__((section("{PARAMS_SECTION}")))',
            f'static const char {_name(module)}[] =\n    "{text}";',
        ]
    )


def read_identity(module: Module) -> list[str]:
    """Return the statement that reads the id, so that linkers keep it as long as the model is in use."""
    return [f"    (void)*(const volatile char *){_name(module)};"] if has_identity(module) else []


def has_identity(module: Module) -> bool:
    """Whether an id is generated: the module has none of its own, what it was made from is known, its name fits."""
    text = str(Identity(module.name, module.source_sha256, __version__))
    return not module.model_id and len(identities(text.encode() + b"\0")) == 1


def _name(module: Module) -> str:
    return f"mlf_{module.name}_model_id"
