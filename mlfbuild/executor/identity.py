"""Print the id of a module of another compiler in its generated entry; native modules have it in their own code."""

from __future__ import annotations

from mlfbuild import __version__
from mlfbuild.library import Identity, Module, identities
from mlfbuild.library.cgen import PARAMS_SECTION


def print_identity(module: Module) -> str:
    """Return the definition of the id; empty if it is not known from which file the module was made.

    It is a constant text in the section of parameters, with a zero byte at its end, which ``identities`` finds in an
    image.
    """
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
    """Return the statement that reads the id, so that linkers keep it if the model is used.

    Return nothing for modules without an id, such as those whose own code has one. The statement belongs into each run
    function, because linkers drop sections that no function refers to.
    """
    # One byte is enough: --gc-sections keeps or drops a whole section. Without `volatile`, compilers drop the read.
    return [f"    (void)*(const volatile char *){_name(module)};"] if has_identity(module) else []


def has_identity(module: Module) -> bool:
    """Return whether an id is generated: the module has none, its source is known, and its name fits the format.

    The ID is read back with ``identities`` to see whether it has the form that ``mlfbuild inspect`` finds: a module's
    name may be too long for it.
    """
    text = str(Identity(module.name, module.source_sha256, __version__))
    return not module.model_id and len(identities(text.encode() + b"\0")) == 1


def _name(module: Module) -> str:
    return f"mlf_{module.name}_model_id"
