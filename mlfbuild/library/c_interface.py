"""The header of TVM's C interface in TVM's form: the part that is the same for all compilers, and that of hooked runs.

A hooked run, which the option ``hook`` adds regardless of the executor, calls a function of the firmware before each
operator. The function can feed a watchdog, yield to other tasks, or cancel the run with a code. The codes of a run
itself are 0 or negative, so firmware should use positive ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.library.cgen import in_own_section
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
    workspace_io: bool = False
    """Whether inputs and outputs are in the workspace, which the caller passes (TVM's ``use_workspace_io``)."""
    pools: tuple[Member, ...] = ()
    """The memory pools that the workspace consists of, if ``workspace_io``."""

    @property
    def prefix(self) -> str:
        """The prefix of the interface's names."""
        return struct_prefix(self.name)


def guarded(guard: str, preamble: str, parts: Iterable[str], *, sizes: bool = False) -> str:
    """Return the text of a header for C and C++ with these parts.

    ``guard`` is the name of the macro, ``preamble`` a comment before it, and ``parts`` are separated by blank lines.
    ``<stdint.h>`` is included, which the run function needs, and ``<stddef.h>`` with ``sizes``.
    """
    return "\n\n".join(
        [
            preamble,
            f"#ifndef {guard}\n#define {guard}",
            "#include <stddef.h>\n#include <stdint.h>" if sizes else "#include <stdint.h>",
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
    # By name: a tensor that is both input and output has one macro.
    distinct = {member.name: member for member in (*interface.inputs, *interface.outputs)}
    words = macro_words(distinct)
    for member in distinct.values():
        kind = "Input" if member in interface.inputs else "Output"
        about = f"{kind} tensor {member.name} size (in bytes) {module}"
        yield _defined(about, f"{upper}_{words[member.name]}_SIZE", member.size)
    yield from interface_structs(interface)
    if interface.workspace_io:
        yield from _pool_parts(interface)
        params = [r"\param workspace_pools Workspace memory pool pointers for the module"]
    else:
        params = [
            r"\param inputs Input tensors for the module; they are only read",
            r"\param outputs Output tensors for the module; they must not overlap with anything else",
        ]
    parameters = ",\n".join(f"  {each}" for each in run_parameters(prefix, workspace_io=interface.workspace_io))
    yield brief(f"entrypoint function {module}", *about_run, *params, *results) + (
        f"\nint32_t {prefix}_run(\n{parameters}\n);"
    )
    yield _defined(f"Workspace size {module}", f"{upper}_WORKSPACE_SIZE", interface.workspace_size)
    if interface.workspace_io:
        for pool in interface.pools:
            yield _defined(f"{pool.name} size {module}", f"{upper}_{pool.name.upper()}_WORKSPACE_POOL_SIZE", pool.size)


def run_parameters(prefix: str, *, workspace_io: bool) -> list[str]:
    """Return the declarations of the parameters of the run function of TVM's interface.

    For example, ``struct tvmgen_kws_inputs* inputs``. Empty structs are passed as well, so that the number of
    parameters is the same for all modules.
    """
    kinds = ("workspace_pools",) if workspace_io else ("inputs", "outputs")
    return [f"struct {prefix}_{kind}* {kind}" for kind in kinds]


def _pool_parts(interface: CInterface) -> Iterator[str]:
    """Yield TVM's struct of memory pools, and its functions that find inputs and outputs in them."""
    prefix, module = interface.prefix, f'for TVM module "{interface.name}"'
    lives = {
        "inputs": ["Write all inputs before each run: a run may overwrite them with other tensors."],
        "outputs": ["They are valid after a run until an input is written or the next run begins."],
    }
    yield brief(f"Workspace pool pointers {module}") + _struct(f"{prefix}_workspace_pools", interface.pools)
    for kind, about in lives.items():
        yield (
            brief(
                f"Maps {kind} inside the workspace pools {module}",
                *about,
                r"\param workspace_pools Workspace memory pool struct for the module, with all pointers set",
                r"\return pointers into the pools",
            )
            + f"\nstruct {prefix}_{kind} {prefix}_map_{kind}(\n  struct {prefix}_workspace_pools* workspace_pools\n);"
        )


def interface_structs(interface: CInterface) -> Iterator[str]:
    """Yield the structs of pointers to inputs and to outputs.

    A side without tensors has a member ``unused``, because C has no empty structs.
    """
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


def _defined(about: str, name: str, value: int) -> str:
    return f"{brief(about)}\n#define {name} {value}"


def _struct(name: str, members: Iterable[Member]) -> str:
    lines = [f"  void* {member.name};" for member in members] or ["  void* unused; /* C has no empty structs */"]
    return "\n".join(["", f"struct {name} {{", *lines, "};"])


@dataclass(frozen=True)
class HookedOperator:
    """A row of the table of operators; both texts need no escapes in a C string."""

    name: str
    """The name in the model or, if unknown, in the graph."""
    operator: str
    """The kind, such as ``CONV_2D``, or the function that a graph calls."""


def print_hook_type(module: str, count: int) -> Iterator[str]:
    """Yield the parts of a header that declare the hook of ``module`` and the table of its ``count`` operators.

    ``module`` is the module's name in C.
    """
    macro = f"MLF_{module.upper()}_OPERATORS"
    yield _defined("Number of operators: the number of hook calls in a run that is not cancelled", macro, count)
    if count:
        yield "\n".join(
            [
                brief("The operators, by index; the table is in the image only if the firmware uses it"),
                f"struct mlf_{module}_operator {{",
                "  const char* name;          /* in the model or graph; _ replaces other than plain text */",
                "  const char* operator_name; /* such as CONV_2D; in TVM's graphs the function called */",
                "};",
                f"extern const {_table(module)};",
            ]
        )
    yield "\n".join(
        [
            brief(
                "is called before each operator",
                r"\param context the argument of the hooked run",
                rf"\param operator_index of the next operator, from 0 to {macro} - 1, in ascending order",
                r"\return 0 to continue; any other value cancels the run, which then returns it: use positive",
                "        values, because the results of a run itself are 0 or negative",
            ),
            f"typedef int32_t mlf_{module}_hook(void* context, uint32_t operator_index);",
        ]
    )


def print_operators(module: str, operators: Sequence[HookedOperator]) -> str:
    """Return the definition of the table of ``operators``; empty if there are none."""
    if not operators:
        return ""
    macro, section = f"TVMGEN_{module.upper()}_OPERATORS_TABLE", f".rodata.mlf_{module}_operators"
    rows = (f'    {{"{each.name}", "{each.operator}"}},' for each in operators)
    return droppable_table(macro, section, _table(module), rows)


def _table(module: str) -> str:
    return f"struct mlf_{module}_operator mlf_{module}_operators[MLF_{module.upper()}_OPERATORS]"


def print_static_hooked_run(module: str, *about: str, workspace_io: bool = False) -> str:
    """Return the declaration of ``tvmgen_<module>_run_hooked``; ``about`` are further lines of its comment.

    With ``workspace_io``, inputs and outputs are in the pools that it takes.
    """
    return "\n".join(
        [
            brief(
                f"runs the module as tvmgen_{module}_run does, and calls a hook before each operator",
                *about,
                r"\param hook function to call before each operator, or NULL",
                r"\param context passed to it",
                r"\return also the value with which the hook cancelled the run",
            ),
            f"int32_t tvmgen_{module}_run_hooked(",
            *(f"  {each}," for each in run_parameters(f"tvmgen_{module}", workspace_io=workspace_io)),
            f"  mlf_{module}_hook* hook,",
            "  void* context",
            ");",
        ]
    )


def print_static_pools_declaration(module: str, *, workspace_io: bool) -> str:
    """Return the declaration of ``mlf_<module>_static_pools``; ``module`` is the module's name in C.

    With ``workspace_io``, inputs and outputs are in the pools, and the module has functions that map them.
    """
    maps = f"tvmgen_{module}_map_inputs, tvmgen_{module}_map_outputs and " if workspace_io else ""
    about = brief(
        f'returns the memory pools of module "{module}" in a static workspace, for one run at a time',
        "If the firmware does not call it, that workspace is not in the image (-Wl,--gc-sections).",
        rf"\return pools for {maps}tvmgen_{module}_run",
    )
    return f"{about}\nstruct tvmgen_{module}_workspace_pools mlf_{module}_static_pools(void);"


def print_static_pools(module: str, addresses: Mapping[str, str]) -> str:
    """Return the definition of ``mlf_<module>_static_pools``.

    ``addresses`` has the address of each pool, by the name of its member in C; ``module`` is the module's name in C.
    """
    function, kind = f"mlf_{module}_static_pools", f"struct tvmgen_{module}_workspace_pools"
    members = [f"    pools.{member} = {address};" for member, address in addresses.items()]
    head = [*in_own_section(function), f"{kind} {function}(void)", "{"]
    return "\n".join([*head, f"    {kind} pools;", "", *members, "    return pools;", "}"])
