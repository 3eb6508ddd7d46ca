"""The linker sections of generated code: TVM's names, which linker scripts contain."""

PARAMS_SECTION = ".rodata.tvm"
"""Constants."""
WORKSPACE_SECTION = ".bss.noinit.tvm"
"""The static workspace."""


def chooses_section(workspace: str | None) -> bool:
    """Return whether ``workspace``, a key of a placement, names another section than the usual one."""
    return workspace not in (None, WORKSPACE_SECTION)


def in_own_section(name: str) -> list[str]:
    """Return the lines before a function that put it in the section ``.text.<name>``, which linkers can drop.

    Without it, GCC puts all functions of a file into one section unless the firmware is built with -ffunction-sections.
    """
    return ["#if defined(__GNUC__) && defined(__ELF__)", f'__attribute__((section(".text.{name}")))', "#endif"]
