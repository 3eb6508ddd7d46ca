"""The header of TVM's C interface in TVM's form: the part that is the same for all compilers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.library.names import macro_words, struct_prefix


@dataclass(frozen=True)
class Member:
    """An input or output of a module: a member of the struct of pointers."""

    name: str
    """The name in C."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class CInterface:
    """The interface of a module for firmware."""

    name: str
    """The module's name."""
    inputs: tuple[Member, ...]
    outputs: tuple[Member, ...]
    """In call order; an output that is also an input is the same member."""
    workspace_size: int
    """Bytes."""

    @property
    def prefix(self) -> str:
        """The prefix of the interface's names."""
        return struct_prefix(self.name)


def guarded(guard: str, front_matter: str, parts: Iterable[str]) -> str:
    """Return the text of a header for C and C++ with these parts."""
    return "\n\n".join(
        [
            front_matter,
            f"#ifndef {guard}\n#define {guard}",
            "#include <stdint.h>",
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            *parts,
            "#ifdef __cplusplus\n}\n#endif",
            f"#endif /* {guard} */\n",
        ]
    )


def interface_parts(interface: CInterface, about_run: Sequence[str] = (), results: Sequence[str] = ()) -> Iterator[str]:
    """Yield the parts of ``tvmgen_<module>.h`` in TVM's order.

    ``about_run`` are additional lines of the run function's comment, ``results`` lines about its return values.
    """
    prefix, upper = interface.prefix, interface.prefix.upper()
    module = f'for TVM module "{interface.name}"'
    distinct = {member.name: member for member in (*interface.inputs, *interface.outputs)}
    words = macro_words(distinct)
    for member in distinct.values():
        kind = "Input" if member in interface.inputs else "Output"
        yield brief(f"{kind} tensor {member.name} size (in bytes) {module}") + (
            f"\n#define {upper}_{words[member.name]}_SIZE {member.size}"
        )
    yield from interface_structs(interface)
    yield (
        brief(
            f"entrypoint function {module}",
            *about_run,
            r"\param inputs Input tensors for the module; they are only read",
            r"\param outputs Output tensors for the module; they must not overlap with anything else",
            *results,
        )
        + f"\nint32_t {prefix}_run(\n  struct {prefix}_inputs* inputs,\n  struct {prefix}_outputs* outputs\n);"
    )
    yield brief(f"Workspace size {module}") + f"\n#define {upper}_WORKSPACE_SIZE {interface.workspace_size}"


def interface_structs(interface: CInterface) -> Iterator[str]:
    """Yield the structs of pointers to inputs and to outputs."""
    module = f'for TVM module "{interface.name}"'
    yield brief(f"Input tensor pointers {module}") + _struct(f"{interface.prefix}_inputs", interface.inputs)
    yield brief(f"Output tensor pointers {module}") + _struct(f"{interface.prefix}_outputs", interface.outputs)


def droppable_table(macro: str, section: str, declarator: str, rows: Iterable[str]) -> str:
    """Return the definition of a constant table of ``rows``, which the linker drops if the firmware does not use it.

    ``macro`` is the name of a macro for the attribute that puts it into ``section``, which only this table uses.
    """
    return "\n".join(
        [
            "#if defined(__GNUC__) && defined(__ELF__) && !defined(__PIC__)",
            "/* In a section of its own: --gc-sections drops the table if nothing uses it. */",
            f'#define {macro} __attribute__((section("{section}")))',
            "#else",
            f"#define {macro} /* position-independent code relocates pointers when it starts */",
            "#endif",
            "",
            f"{macro} const {declarator} = {{",
            *rows,
            "};",
        ]
    )


def brief(*lines: str) -> str:
    """Return ``lines`` as a comment in TVM's style."""
    first, *more = lines
    return "\n".join(["/*!", rf" * \brief {first}", *(f" * {line}" for line in more), " */"])


def _struct(name: str, members: Iterable[Member]) -> str:
    lines = [f"  void* {member.name};" for member in members] or ["  void* unused; /* C has no empty structs */"]
    return "\n".join(["", f"struct {name} {{", *lines, "};"])
