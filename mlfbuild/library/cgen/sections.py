"""The linker sections of generated code: TVM's names, which linker scripts contain."""

PARAMS_SECTION = ".rodata.tvm"
"""Constants."""
WORKSPACE_SECTION = ".bss.noinit.tvm"
"""The static workspace."""


def chooses_section(workspace: str | None) -> bool:
    """Return whether ``workspace``, a key of a placement, names another section than the usual one."""
    return workspace not in (None, WORKSPACE_SECTION)
