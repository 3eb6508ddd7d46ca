"""List every finding: its code, severity, meaning and advice.

The meaning of a code never changes, and a code that is no longer used is not used again. The hundreds are the subject:
1 files, 2 metadata, 3 names, 4 memory, 5 graph, 6 parameters, 7 code, 8 external dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.archive.validate.findings import Finding, Severity
from mlfbuild.core import shown


@dataclass(frozen=True)
class FindingKind:
    """Common properties of all findings of one code."""

    severity: Severity
    meaning: str
    advice: str

    @property
    def repairable(self) -> bool:
        """Whether ``mlfbuild convert --repair`` removes the findings; a date only if its time zone is proved."""
        return self.advice.startswith(_REPAIR)


def _error(meaning: str, advice: str) -> FindingKind:
    return FindingKind("error", meaning, advice)


def _warning(meaning: str, advice: str) -> FindingKind:
    return FindingKind("warning", meaning, advice)


def _note(meaning: str, advice: str) -> FindingKind:
    return FindingKind("note", meaning, advice)


_REPAIR = "run mlfbuild convert --repair"
_REPLACE = "use an intact copy of the archive, or compile the model again"

CODES: Mapping[str, FindingKind] = {
    # Files
    "MLF101": _error("a module has neither C files nor objects", _REPLACE),
    "MLF102": _warning("the numbers of the files <module>_lib<n> have a gap, so a file seems to be missing", _REPLACE),
    "MLF103": _warning(
        "the program text of a module is missing",
        "ignore it in builds, which do not need the text; it documents what the code computes",
    ),
    "MLF104": _warning(
        "a file has the place and form of a module's file but belongs to no module",
        "check the module's name, or remove the file",
    ),
    "MLF105": _warning(
        "C++ source, which the projects that TVM generates do not compile", "make sure that your own build compiles it"
    ),
    "MLF106": _warning(
        "code outside codegen/host, which TVM's tools do not find",
        "declare its device under devices of the target in the project file",
    ),
    "MLF107": _warning(
        "a file is in the place that another version of the format uses", "run mlfbuild convert --to 7, which moves it"
    ),
    "MLF108": _note("a file does not belong to the format", "ignore it; mlfbuild keeps it unchanged"),
    "MLF109": _warning(
        "the TIR text of a device is missing or was overwritten by another target's",
        "do not rely on the TIR of this export",
    ),
    # Metadata
    "MLF201": _warning(
        "a key that the format does not have", "tools ignore it; facts of your own belong in extensions"
    ),
    "MLF202": _warning(
        "a key of this version of the format is missing", "run mlfbuild convert --to 7, which writes all known keys"
    ),
    "MLF203": _warning(
        "a value has another type than in this version of the format",
        "run mlfbuild convert --to 7, which writes the value in the type of version 7",
    ),
    "MLF204": _warning(
        "a key belongs only to another version of the format",
        "check the key version, or run mlfbuild convert --to 7, which writes the keys of version 7",
    ),
    "MLF205": _warning(
        "a date does not have the form YYYY-MM-DD HH:MM:SSZ", "write it in this form; tools may fail to read it"
    ),
    "MLF206": _note(
        "TVM's exporter writes local time and marks it Z, as UTC",
        f"{_REPAIR} on the exporter's file, whose members' times may prove the time zone, or do not compare the date",
    ),
    "MLF207": _warning(
        "the date of the export is in the future",
        "read it as local time marked Z, as TVM writes it, or as the time of a wrong clock",
    ),
    "MLF208": _warning(
        "model_name differs from the module's name", "make both names equal, because tools use one or the other"
    ),
    "MLF209": _note("TVM 0.9 and later tools do not read this version", "run mlfbuild convert --to 7"),
    "MLF210": _warning("a dtype is not one of TVM's", "check the dtype; the sizes of this tensor cannot be checked"),
    "MLF211": _warning(
        "neither DLPack nor TVM defines this device type",
        "use 1, the CPU, which is the device type of all targets for microcontrollers",
    ),
    # Names
    "MLF301": _error(
        "a module's name contains a character that C names cannot contain",
        "rename the module (mlfbuild convert --module-name) to a name of a-z, 0-9 and _",
    ),
    "MLF302": _warning(
        "a module's name has upper-case letters, which become lower case in the header's name and its macros",
        "rename the module (mlfbuild convert --module-name) to a name of a-z, 0-9 and _",
    ),
    "MLF303": _error(
        "the names of two modules differ only in case, so they share header and macros", "rename one of them"
    ),
    "MLF304": _error(
        "a member of a struct of the header has a name that C does not allow",
        "rename the tensor and compile the model again",
    ),
    "MLF305": _error("two tensors have the same name in C", "rename one of them and compile the model again"),
    "MLF306": _warning(
        "an input and an output with the same name define the same macro", "do not use that _SIZE macro"
    ),
    "MLF307": _warning(
        "the macro for the size of a tensor called workspace has the name of the macro for the workspace's size",
        "do not use that _WORKSPACE_SIZE macro",
    ),
    # Memory
    "MLF401": _warning(
        "the size of a storage id is wrong: TVM's exporter takes that of another entry of the graph",
        f"{_REPAIR}, which writes the size that the graph needs",
    ),
    "MLF402": _error(
        "the size of a storage id differs from the size that its entries in the graph need",
        f"{_REPAIR}, which writes the size that the graph needs",
    ),
    "MLF403": _warning(
        "input_binding differs from the graph, because TVM's exporter counts wrongly after a node with several outputs",
        f"{_REPAIR}, which reads it from the graph",
    ),
    "MLF404": _error("metadata and graph have different storage ids", _REPLACE),
    "MLF405": _warning(
        "memory.functions.main has several entries for one device; until 2022 TVM wrote one per target",
        "reserve their sum, which is sufficient for the device",
    ),
    "MLF406": _warning(
        "the header's WORKSPACE_SIZE is the size for the first device only",
        "read the sizes for the other devices from the metadata",
    ),
    "MLF407": _error("the header's WORKSPACE_SIZE differs from the metadata", "reserve the larger size"),
    "MLF408": _warning(
        "the header's size of a tensor is an arbitrary number, a bug of TVM 0.11",
        f"{_REPAIR}, which writes the size in the metadata",
    ),
    "MLF409": _error(
        "the header's size of a tensor differs from the metadata",
        "find out which size is correct before you use either of them",
    ),
    "MLF410": _error("the size of a tensor does not match its shape and dtype", _REPLACE),
    "MLF411": _error(
        "an operator needs more workspace than the metadata lists for the whole module",
        "reserve at least the workspace of the operator",
    ),
    "MLF412": _warning(
        "io_size_bytes is less than the sizes of inputs and outputs",
        f"{_REPAIR}, which writes their sum",
    ),
    "MLF413": _note(
        "io_size_bytes is more than the sizes of inputs and outputs, because TVM adds intermediate results",
        f"{_REPAIR}, which writes their sum",
    ),
    "MLF414": _warning(
        "the memory pools of the code are larger than the workspace in the metadata",
        "reserve the sizes that the code contains",
    ),
    # Graph
    "MLF501": _error("the graph contradicts itself", _REPLACE),
    "MLF502": _warning(
        "TVM's C runtime cannot load or run the graph", "run the graph with mlfbuild's executor or TVM's C++ runtime"
    ),
    "MLF503": _warning(
        "the graph's first argument is a parameter, which TVM's C runtime does not load",
        "set the parameter with TVMGraphExecutor_SetInput, or use mlfbuild's executor",
    ),
    "MLF504": _warning(
        "TVMSystemLibEntryPoint is missing, so TVM's C runtime cannot find the graph's functions",
        "use mlfbuild's executor, or export with system-lib",
    ),
    "MLF505": _error("the graph calls a function that the code does not define", _REPLACE),
    "MLF506": _error("the graph and the metadata have different outputs", _REPLACE),
    "MLF507": _error(
        "an argument of the graph is neither an input nor a parameter",
        "find the parameters with which the graph was exported",
    ),
    "MLF508": _error("the graph calls a function that the registry does not list, so TVM's C runtime stops", _REPLACE),
    # Parameters
    "MLF601": _warning(
        "a parameter is not an argument of the graph, so TVM's C runtime stops",
        "remove the parameter; TVM's C++ runtime ignores it",
    ),
    "MLF602": _error(
        "shape or dtype of a parameter differs from the graph", "find the parameters with which the graph was exported"
    ),
    "MLF603": _warning("a parameter exceeds a limit of TVM's C runtime", "raise the limit in crt_config.h"),
    "MLF604": _warning(
        "parameters in JSON differ from those in TVM's form", "remove the wrong file; mlfbuild uses TVM's form"
    ),
    # Code
    "MLF701": _error(
        "a module includes a header that does not exist under exactly that name",
        "compile the model again with a module name of a-z, 0-9 and _",
    ),
    "MLF702": _error(
        "a function has two contradicting declarations, a bug of TVM for system-lib, so other tools cannot compile it",
        f"{_REPAIR}, which writes the real declaration; mlfbuild itself always compiles such a copy",
    ),
    "MLF703": _warning(
        "several modules define TVMSystemLibEntryPoint, so they do not link into one image",
        "link only one of them, or build them with mlfbuild, which renames the symbol in each module",
    ),
    "MLF704": _warning(
        "several modules define __tvm_module_ctx, so they do not link into one image",
        "link only one of them, or build them with mlfbuild, which renames the symbol in each module",
    ),
    "MLF705": _error("a module defines a symbol in two files", _REPLACE),
    "MLF706": _warning(
        "two modules define the same symbol, so they do not link into one image",
        "give one of them another module name when you compile it",
    ),
    "MLF707": _error("a function of the registry is not defined", _REPLACE),
    "MLF708": _error("the registry's names and functions do not match", _REPLACE),
    "MLF709": _error("the entry function of a module is not defined", _REPLACE),
    "MLF710": _warning(
        "a function in the metadata is not defined in the code", "do not rely on its figures, which describe other code"
    ),
    "MLF711": _error(
        "the header's struct and the metadata have different tensors",
        "rely on the header, with which the code is compiled",
    ),
    "MLF712": _note(
        "a file cannot be checked, because it is too large or not an ELF object", "check its content by other means"
    ),
    "MLF713": _note(
        "the code includes headers of a library that no dependency names",
        "name it under dependencies in the project file",
    ),
    "MLF714": _warning(
        "a function of a module is declared, but no file of the archive defines it",
        "define it in your own build; otherwise the code does not link",
    ),
    # External dependencies
    "MLF801": _error(
        "the entry of an external dependency violates the format", "correct it in the tool that wrote the archive"
    ),
    "MLF802": _warning(
        "the folder of an external dependency is not in the archive", "add it to the build from elsewhere"
    ),
    "MLF803": _error(
        "one dependency is required in different versions or forms",
        "compile the modules again with one version",
    ),
    "MLF804": _note(
        "no dependency names the runtime folder", "find out its version, because generated code and runtime must match"
    ),
    "MLF805": _error(
        "the archive's description of an included dependency does not match its files", "bundle the dependency again"
    ),
    "MLF806": _warning("a module names the same external dependency twice", f"{_REPAIR}, which keeps one of them"),
}
"""The meaning of each finding code."""


def finding(code: str, place: str, message: str) -> Finding:
    """Return the finding ``code`` at ``place``; place and message may contain names from the archive."""
    common = CODES[code]
    return Finding(code, common.severity, shown(place), shown(message), common.advice, common.repairable)
