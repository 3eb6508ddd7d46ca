"""Every finding there is: its code, how grave it is, what it means and what to do.

A code keeps its meaning for ever; one that is no longer needed is not given out again. The hundreds tell the subject:
1 files, 2 metadata, 3 names, 4 memory, 5 graph, 6 parameters, 7 code, 8 external dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.archive.validate.types import Finding, Severity
from mlfbuild.core import shown


@dataclass(frozen=True)
class Code:
    """What all findings of one code have in common."""

    severity: Severity
    meaning: str
    advice: str


def _error(meaning: str, advice: str) -> Code:
    return Code("error", meaning, advice)


def _warning(meaning: str, advice: str) -> Code:
    return Code("warning", meaning, advice)


def _note(meaning: str, advice: str) -> Code:
    return Code("note", meaning, advice)


_EXPORT = "export the archive again"

CODES: Mapping[str, Code] = {
    # Files
    "MLF101": _error("a module has neither C files nor objects", _EXPORT),
    "MLF102": _warning("a number is missing among <module>_lib<n>, so a file seems lost", _EXPORT),
    "MLF103": _warning(
        "the program text that belongs to a module is missing",
        "no build needs it; people who ask what the code computes do",
    ),
    "MLF104": _warning(
        "a file lies among those of the modules but belongs to none", "check the module's name, or remove the file"
    ),
    "MLF105": _warning(
        "C++ source, which the projects that TVM generates leave out", "see that your own build compiles it"
    ),
    "MLF106": _warning("code outside codegen/host, where TVM's tools do not look", "see that your own build finds it"),
    "MLF107": _warning(
        "a file lies where another version of the format has it", "mlfbuild convert --to 7 puts it in place"
    ),
    "MLF108": _note("a file is no part of the format", "ignore it; mlfbuild keeps it as it is"),
    "MLF109": _warning(
        "the TIR text of a device is missing or was overwritten by another target's",
        "read the TIR of this export with care",
    ),
    # Metadata
    "MLF201": _warning("a key that the format does not have", "check its spelling"),
    "MLF202": _warning(
        "a key that this version of the format has is missing", "mlfbuild convert --to 7 writes what is known"
    ),
    "MLF203": _warning(
        "a value of another type than this version of the format has", "mlfbuild convert --to 7 writes it in its form"
    ),
    "MLF204": _warning(
        "a key that only another version of the format has",
        "check version; mlfbuild convert --to 7 writes version 7's keys",
    ),
    "MLF205": _warning("a date that is not YYYY-MM-DD HH:MM:SSZ", "write it so; tools may fail to read it"),
    "MLF206": _note(
        "TVM's exporter writes local time and marks it Z, as UTC", "do not compare it with dates of other machines"
    ),
    "MLF207": _warning(
        "the date of the export lies in the future",
        "take it as local time marked Z, as TVM writes it, or as that of a wrong clock",
    ),
    "MLF208": _warning("model_name differs from the module's name", "make them equal; tools use one or the other"),
    "MLF209": _note(
        "a version that TVM 0.9 and later tools do not read", "mlfbuild convert --to 7 makes a version 7 of it"
    ),
    "MLF210": _warning("a dtype that is not TVM's", "check it; sizes of this tensor cannot be checked"),
    "MLF211": _warning(
        "a device type that neither DLPack nor TVM has", "use 1, the CPU, which every target for microcontrollers is"
    ),
    # Names
    "MLF301": _error(
        "a module's name has a character that C names cannot have", "export with a name of a-z, 0-9 and _"
    ),
    "MLF302": _warning(
        "a module's name has upper-case letters, which header and macros lose", "export with a name of a-z, 0-9 and _"
    ),
    "MLF303": _error(
        "two modules differ only in upper and lower case, so they share header and macros", "rename one of them"
    ),
    "MLF304": _error(
        "a member of a struct of the header has a name that C cannot have", "rename the tensor and export again"
    ),
    "MLF305": _error("two tensors have one name in C", "rename one of them and export again"),
    "MLF306": _warning("an input and an output of one name define one macro twice", "do not use that _SIZE macro"),
    "MLF307": _warning(
        "the size of a tensor called workspace has the macro of the workspace's size",
        "do not use that _WORKSPACE_SIZE macro",
    ),
    # Memory
    "MLF401": _warning(
        "the size of a storage id is wrong: TVM's exporter takes that of another entry of the graph",
        "use the size that the graph needs",
    ),
    "MLF402": _error(
        "the size of a storage id is not what its entries in the graph need", "use the size that the graph needs"
    ),
    "MLF403": _warning(
        "input_binding is not the graph's, as TVM's exporter writes it behind a node of several outputs",
        "read it from the graph",
    ),
    "MLF404": _error("metadata and graph have different storage ids", _EXPORT),
    "MLF405": _warning(
        "memory.functions.main has several entries for one device: until 2022 TVM wrote one a target",
        "their sum is enough for the device",
    ),
    "MLF406": _warning(
        "the header's WORKSPACE_SIZE is that of the first device only", "read the others from the metadata"
    ),
    "MLF407": _error(
        "the header's WORKSPACE_SIZE differs from the metadata", "reserve the larger one, and export the archive again"
    ),
    "MLF408": _warning(
        "the header's size of a tensor is garbage, as TVM 0.11 writes it", "use the size of the metadata, not the macro"
    ),
    "MLF409": _error(
        "the header's size of a tensor differs from the metadata",
        "use neither before you know which is right; export the archive again",
    ),
    "MLF410": _error("the size of a tensor is not that of its shape and dtype", _EXPORT),
    "MLF411": _error(
        "an operator needs more workspace than the whole module claims", "reserve at least the operator's"
    ),
    "MLF412": _warning("io_size_bytes is less than inputs and outputs take", "use the sizes of the tensors"),
    "MLF413": _note(
        "io_size_bytes counts more than inputs and outputs: TVM adds intermediate results",
        "use the sizes of the tensors",
    ),
    "MLF414": _warning(
        "the memory pools of the code are larger than the workspace of the metadata", "reserve what the code says"
    ),
    # Graph
    "MLF501": _error("the graph is not sound", _EXPORT),
    "MLF502": _warning(
        "TVM's C runtime does not load or run the graph",
        "run it with TVM's C++ runtime, or export for the AOT executor",
    ),
    "MLF503": _warning(
        "the graph's first argument is a parameter, which TVM's C runtime does not load",
        "set it with TVMGraphExecutor_SetInput, or export for the AOT executor",
    ),
    "MLF504": _warning(
        "no TVMSystemLibEntryPoint, so that TVM's C runtime finds none of the graph's functions",
        "export with system-lib, or for the AOT executor",
    ),
    "MLF505": _error("the graph calls a function that the code does not define", _EXPORT),
    "MLF506": _error("the graph and the metadata have different outputs", _EXPORT),
    "MLF507": _error(
        "an argument of the graph is neither an input nor a parameter", "look for the parameters it was exported with"
    ),
    "MLF508": _error("the graph calls a function that the registry does not list, so TVM's C runtime stops", _EXPORT),
    # Parameters
    "MLF601": _warning(
        "a parameter is no argument of the graph, which makes TVM's C runtime stop",
        "remove it; TVM's C++ runtime passes over it",
    ),
    "MLF602": _error(
        "shape or dtype of a parameter is not that of the graph", "look for the parameters it was exported with"
    ),
    "MLF603": _warning("a parameter exceeds a limit of TVM's C runtime", "raise the limit in crt_config.h"),
    # Code
    "MLF701": _error(
        "an included header of a module is missing under exactly that name",
        "rename the module to a-z, 0-9 and _, and export again",
    ),
    "MLF702": _error(
        "a function is declared in two ways, as TVM does for system-lib with unpacked or C interface",
        "export without system-lib",
    ),
    "MLF703": _warning(
        "several modules define TVMSystemLibEntryPoint, so they do not link into one image",
        "link one of them, or export without system-lib",
    ),
    "MLF704": _warning(
        "several modules define __tvm_module_ctx, so they do not link into one image",
        "link one of them, or rename it in the others",
    ),
    "MLF705": _error("a module defines a symbol in two files", _EXPORT),
    "MLF706": _warning(
        "two modules define one symbol, so they do not link into one image",
        "export one of them again under another module name",
    ),
    "MLF707": _error("a function of the registry is not defined", _EXPORT),
    "MLF708": _error("names and functions of the registry do not fit", _EXPORT),
    "MLF709": _error("the entry function of a module is not defined", _EXPORT),
    "MLF710": _warning(
        "a function of the metadata is not defined in the code",
        "do not count on its figures, which speak of other code",
    ),
    "MLF711": _error(
        "the header's struct and the metadata have different tensors",
        "trust the header, which the code is compiled with",
    ),
    "MLF712": _note(
        "a file that could not be looked into: too large, or no ELF object", "check by other means what is in it"
    ),
    "MLF713": _note(
        "the code includes headers of a library that no dependency names",
        "name it under dependencies in the project file",
    ),
    "MLF714": _warning(
        "a function of a module is declared, but no file of the archive defines it",
        "see that your own build has it; without it the code does not link",
    ),
    # External dependencies
    "MLF801": _error("an external dependency breaks the rules", "correct it where the archive was made"),
    "MLF802": _warning(
        "the folder of an external dependency is not in the archive", "add it to the build from elsewhere"
    ),
    "MLF803": _error("two modules want one dependency in different ways", "export the modules again with one version"),
    "MLF804": _note(
        "a runtime folder that no dependency names", "find out its version: generated code and runtime must fit"
    ),
    "MLF805": _error(
        "what the archive says of a dependency that it brings along does not fit its files",
        "bundle the dependency again",
    ),
}
"""Finding code -> what it means."""


def finding(code: str, place: str, message: str) -> Finding:
    """Return the finding ``code`` at ``place``; both texts may hold names from the archive."""
    common = CODES[code]
    return Finding(code, common.severity, shown(place), shown(message), common.advice)
