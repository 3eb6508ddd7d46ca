"""Measure the code, tables and RAM of an archive's executor, without the kernels, by the symbols of an image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

from counting.firmware import (
    COMPILER,
    FLAGS,
    Subject,
    build,
    checked_run,
    count_instructions,
    found_in,
    run,
    write_case_data,
)
from mlfbuild.jobs.tree.parts import Part, parts_of
from mlfbuild.jobs.tree.record import Record
from mlfbuild.jobs.tree.target_tree import tree_files
from mlfbuild.jobs.tree.tree import write_tree
from mlfbuild.library import Library
from mlfbuild.targets import CPUS

_PARAMETER = "mlf_parameter_"
_ENTRY = "_entry.c"
_EXECUTES = re.compile(r"_run$|_reset$|__tvm_main__$|^TVMSystemLibEntryPoint")
"""Names of functions in generated sources that compute nothing themselves."""


@dataclass(frozen=True)
class Footprint:
    """The instructions and bytes that the only module of an archive adds to an image."""

    instructions: int
    """Of one inference."""
    kernels: int
    """Functions of the operators."""
    executor: int
    """All other code, with what it takes from the C library."""
    tables: int
    """Constants of the executor: tensors, shapes, calls."""
    weights: int
    """All other constants."""
    ram: int
    """Static memory; inputs and outputs are the caller's."""
    io: int
    """Inputs and outputs."""
    stack: int


@dataclass(frozen=True)
class _Symbol:
    function: bool
    writable: bool
    size: int


def footprint(library: Library, vectors: Path, cpu: str, folder: Path) -> Footprint:
    """Build the only module of ``library`` for ``cpu`` as firmware does, run and measure it in ``folder``.

    Raises ``MeasurementError`` where a program fails, or an output differs from that of the file ``vectors``.
    """
    (module,), (part,) = library.modules, parts_of(library).modules
    files = tree_files(library)
    write_tree(folder / "tree", files, Record.of(files, archive=""))
    subject = Subject(
        name=module.name,
        sources=[folder / "tree" / path for path in part.files],
        include_dirs=[folder / "tree" / path for path in (*part.include_dirs, *part.private_include_dirs)],
        call=f"tvmgen_{module.name}_run(inputs, outputs)",
        workspace_size=0,
    )
    write_case_data(subject, vectors, folder)
    elf, harness = build(subject, cpu, folder)
    counted = count_instructions(elf, cpu)
    known = _symbols(harness)
    added = {name: symbol for name, symbol in _symbols(elf).items() if name not in known}
    kernels = set(_kernels(part, subject, cpu, folder))
    constants = {name: symbol.size for name, symbol in added.items() if not symbol.function and not symbol.writable}
    own = _symbols(folder / "entry.o") if _compile_entry(subject, cpu, folder) else {}
    tables = sum(size for name, size in constants.items() if name in own and not name.startswith(_PARAMETER))
    functions = {name: symbol.size for name, symbol in added.items() if symbol.function}
    return Footprint(
        instructions=int(found_in(r"region 0 insns (\d+)", counted)),
        kernels=sum(size for name, size in functions.items() if name in kernels),
        executor=sum(size for name, size in functions.items() if name not in kernels),
        tables=tables,
        weights=sum(constants.values()) - tables,
        ram=_writable(elf) - _writable(harness),
        io=sum(tensor.size for tensor in (*module.inputs, *module.outputs)),
        stack=int(checked_run(elf, cpu, module.name)["stack"]),
    )


def _kernels(part: Part, subject: Subject, cpu: str, folder: Path) -> Iterator[str]:
    """Yield the names of the functions in the archive's sources, without those that call them in order."""
    for path, source in zip(part.files, subject.sources, strict=True):
        if not path.endswith(_ENTRY):
            names = _symbols(_compile(source, subject, cpu, folder / "kernels.o"))
            yield from (name for name in names if not _EXECUTES.search(name))


def _compile_entry(subject: Subject, cpu: str, folder: Path) -> bool:
    entry = next((source for source in subject.sources if source.name.endswith(_ENTRY)), None)
    if entry is not None:
        _compile(entry, subject, cpu, folder / "entry.o")
    return entry is not None


def _compile(source: Path, subject: Subject, cpu: str, to: Path) -> Path:
    includes = [word for path in subject.include_dirs for word in ("-I", path)]
    run([COMPILER, *CPUS[cpu].flags, *FLAGS, *includes, "-c", source, "-o", to])
    return to


def _symbols(elf: Path) -> Mapping[str, _Symbol]:
    with elf.open("rb") as file:
        image = ELFFile(file)
        return {
            symbol.name: _Symbol(
                symbol["st_info"]["type"] == "STT_FUNC",
                _in_ram(image.get_section(symbol["st_shndx"])),
                symbol["st_size"],
            )
            for symbol in image.get_section_by_name(".symtab").iter_symbols()
            if symbol["st_info"]["type"] in {"STT_FUNC", "STT_OBJECT"} and isinstance(symbol["st_shndx"], int)
        }


def _writable(elf: Path) -> int:
    """Return the bytes of the sections that are in RAM."""
    with elf.open("rb") as file:
        return sum(int(section["sh_size"]) for section in ELFFile(file).iter_sections() if _in_ram(section))


def _in_ram(section: Section) -> bool:
    """Return whether the section is writable; constants of TVM's AOT executor are, by their type, but lie in flash."""
    wanted = SH_FLAGS.SHF_ALLOC | SH_FLAGS.SHF_WRITE
    return section["sh_flags"] & wanted == wanted and not section.name.startswith(".rodata")
