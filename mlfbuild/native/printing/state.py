"""Print the static state, which a model keeps between runs, and the functions that reset it.

The state is a variable separate from the workspace, because it outlives a run. If all its initial values are zero, the
start-up code of the firmware initialises it like every static variable. If they are not, or if the project file places
the state in a section, which may not be zeroed, the first run or reset initialises it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.library.cgen import STATE_ALIGNMENT
from mlfbuild.library.keys import Placement
from mlfbuild.native.printing.checks import Pointer, print_checks
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.program import LinkedModel, Reset


def begins_as_zeros(program: LinkedModel) -> bool:
    """Return whether the initial values of all states are zero."""
    # ``source`` is a constant array with the initial values; without one, the state begins as one repeated byte.
    return all(reset.source is None and reset.value == 0 for reset in program.resets)


def _begins_at_start(program: LinkedModel, placement: Placement) -> bool:
    """Return whether start-up code, which zeroes static variables, initialises the static state."""
    # A section that the project names may be NOLOAD memory, with any content after a reset.
    return begins_as_zeros(program) and placement.state is None


def print_state_attributes(program: LinkedModel, placement: Placement, *, elf: bool) -> Iterator[str]:
    """Yield the macro with the attributes of a placed state, for GNU C and ELF or for other compilers."""
    if program.resets and placement.state is not None:
        section = f'__attribute__((section("{placement.state}"))) ' if elf else ""
        yield f"#define {program.prefix.upper()}_STATE {section}MLF_ALIGNED({STATE_ALIGNMENT})"


def print_state(program: LinkedModel, placement: Placement) -> str:
    """Return the definition of the static state; empty if the model has no state."""
    if not program.resets:
        return ""
    placed = f"{program.prefix.upper()}_STATE"
    attributes = f"MLF_ALIGNED({STATE_ALIGNMENT})" if placement.state is None else placed
    lines = [f"{attributes} static union mlf_{program.name}_state {program.prefix}_state;"]
    if not _begins_at_start(program, placement):
        # A flag of its own: the content of a NOLOAD section does not show whether it was initialised.
        lines += ["/* Not 0 after the first reset of the state. */", f"static uint8_t {program.prefix}_state_begun;"]
    return "\n".join(lines)


def print_reset(program: LinkedModel, blob: str = "") -> str:
    """Return the function that resets a state of the caller; empty if the model has no state.

    ``blob`` is the pointer to the parameters that are used, if they can be replaced; another function then takes one.
    """
    if not program.resets:
        return ""
    body = [
        "    uint8_t *const state = (uint8_t *)kept;",
        "",
        *print_checks(program.name, [Pointer("kept", STATE_ALIGNMENT)]),
        *_reset_lines(program),
        "    return 0;",
    ]
    head = f"int32_t mlf_{program.name}_reset(void *kept)"
    if not blob:
        return print_definition(head, body)
    any_blob = print_definition(f"static int32_t {program.prefix}_reset_with(const uint8_t *blob, void *kept)", body)
    return f"{any_blob}\n\n" + print_definition(head, [f"    return {program.prefix}_reset_with({blob}, kept);"])


def _reset_lines(program: LinkedModel) -> Iterator[str]:
    if begins_as_zeros(program):
        # One call for all states, whose gaps are zeroed as well.
        yield f"    memset(state, 0, {program.plan.state_size});"
        return
    yield from (f"    {_reset_line(reset)}" for reset in program.resets)


def _reset_line(reset: Reset) -> str:
    place = f"&state[{reset.offset}]"
    if reset.source is None:
        return f"memset({place}, {reset.value}, {reset.size});"
    return f"memcpy({place}, {reset.source}, {reset.size});"


def print_static_reset(program: LinkedModel, placement: Placement) -> str:
    """Return the function that resets the static state; empty if the model has no state."""
    if not program.resets:
        return ""
    begun = [] if _begins_at_start(program, placement) else [f"    {program.prefix}_state_begun = 1;"]
    body = [*begun, f"    return mlf_{program.name}_reset(&{program.prefix}_state);"]
    return print_definition(f"int32_t {program.prefix}_reset(void)", body, [f"{program.prefix.upper()}_ENTRY"])


def print_beginning(program: LinkedModel, placement: Placement) -> Iterator[str]:
    """Yield the lines of ``tvmgen_<model>_run`` that initialise the static state in the first run."""
    if program.resets and not _begins_at_start(program, placement):
        yield f"    if (!{program.prefix}_state_begun) {{"
        yield f"        (void){program.prefix}_reset();"
        yield "    }"
