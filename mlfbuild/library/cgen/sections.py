"""The linker sections of generated code: TVM's names, which linker scripts contain."""

PARAMS_SECTION = ".rodata.tvm"
"""Constants."""
WORKSPACE_SECTION = ".bss.noinit.tvm"
"""The static workspace."""
