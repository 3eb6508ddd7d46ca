"""Print what copies weights from flash to fast memory (``memory/weights``).

- Weights that are copied once are in a static variable in the section of their memory, which the firmware need not
  initialise. The first run copies them, or the firmware does so before, with ``mlf_<model>_load_weights``. No linker
  script has to know them, as it would have to for ``.data`` of a memory that start-up code does not initialise.
- Weights that are streamed are in the workspace, so that runs with different workspaces stay independent. The run
  function calls ``mlf_<model>_copy_start`` and ``mlf_<model>_copy_wait``, weak functions that copy with memcpy. A
  firmware with a DMA defines both.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.library import brief
from mlfbuild.library.cgen import ALIGNMENT, SCRATCH_TYPES, union_members
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.program import LinkedModel


def print_weights_attributes(program: LinkedModel, *, elf: bool) -> Iterator[str]:
    """Yield the macro with the attributes of copied weights, for GNU C and ELF or for other compilers."""
    if program.weights is not None and program.copied:
        section = f'__attribute__((section("{program.weights.memory.section}"))) ' if elf else ""
        yield f"#define {program.prefix.upper()}_FAST_WEIGHTS {section}MLF_ALIGNED({ALIGNMENT})"


def print_weights_declarations(program: LinkedModel) -> Iterator[str]:
    """Yield the declarations of the functions that copy weights."""
    name, weights = program.name, program.weights
    if weights is None:
        return
    if program.copied:
        about = brief(
            f'copies weights of module "{name}" to {weights.memory.name}',
            "The first run does so. Call it before several tasks run the module, and after the memory lost power.",
        )
        yield f"{about}\nvoid mlf_{name}_load_weights(void);"
    if weights.blocks:
        about = brief(
            "begins to copy weights to the workspace; define it to use a DMA, by default it is memcpy",
            r"\param to the destination, aligned to 16 bytes",
            r"\param from weights in the memory of constants",
            r"\param size bytes",
        )
        yield f"{about}\nvoid mlf_{name}_copy_start(void* to, const void* from, uint32_t size);"
        about = brief("returns when all copies that were begun have ended, and the core can read them")
        yield f"{about}\nvoid mlf_{name}_copy_wait(void);"


def print_copied_weights(program: LinkedModel) -> Iterator[str]:
    """Yield the definitions of the memory for copied weights, and of the functions that copy weights."""
    name, prefix, weights = program.name, program.prefix, program.weights
    if weights is None:
        return
    if program.copied:
        members = "\n".join(f"    {member}" for member in union_members(weights.size, SCRATCH_TYPES))
        yield (
            f"/* Weights that are copied from flash to {weights.memory.name}. */\n"
            f"{prefix.upper()}_FAST_WEIGHTS static union {{\n{members}\n}} {prefix}_fast_weights;\n"
            f"/* Not 0 after they were copied. */\nstatic uint8_t {prefix}_weights_loaded;"
        )
        body = [f"    memcpy(&{prefix}_fast_weights.uint8_elements[{at}], {constant}, {size});"
                for constant, at, size in program.copied]  # fmt: skip
        body.append(f"    {prefix}_weights_loaded = 1;")
        yield print_definition(f"void mlf_{name}_load_weights(void)", body)
    if weights.blocks:
        weak = ["#if defined(__GNUC__)", "__attribute__((weak))", "#endif"]
        head = f"void mlf_{name}_copy_start(void *to, const void *from, uint32_t size)"
        yield print_definition(head, ["    memcpy(to, from, size);"], weak)
        yield print_definition(f"void mlf_{name}_copy_wait(void)", ["    /* memcpy has ended */"], weak)


def print_loading(program: LinkedModel) -> Iterator[str]:
    """Yield the lines of the run function that copy weights if nothing has copied them before."""
    if program.copied:
        yield f"    if ({program.prefix}_weights_loaded == 0u) {{"
        yield f"        mlf_{program.name}_load_weights();"
        yield "    }"


def notes_of_weights(program: LinkedModel) -> Iterator[str]:
    """Yield notes about what copies of weights gain, by estimate."""
    weights = program.weights
    if weights is None:
        return
    memory, gain = weights.memory.name, weights.gain // 1000
    if weights.copies:
        yield (
            f"weights: {weights.size:,} of {weights.of:,} bytes are copied to {memory}:"
            f" {gain:,} modelled cycles fewer in a run"
        )
    if weights.memory.reserved:
        size = sum(block.size for block in weights.blocks)
        gain, copying = weights.streamed_gain // 1000, weights.copying // 1000
        yield (
            f"weights: {size:,} bytes of {len(weights.blocks)} operators are streamed to {memory}: {gain:,} modelled"
            f" cycles fewer in a run if a DMA copies them, and {copying:,} more if the core does"
        )
