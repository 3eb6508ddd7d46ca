"""Check the options of a request for the built-in compiler, and import the compiler only when it compiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlfbuild.core import Mistake, UsageError, unknown
from mlfbuild.library import PARAMETERS, REPLACEABLE, check_switch, invalid_option, refuse_options
from mlfbuild.library.keys import CONSTANT_CLASSES

if TYPE_CHECKING:
    from mlfbuild.library import CompileRequest, Library, OptionValue

__all__ = ["EXECUTORS", "NATIVE", "NativeCompiler"]

EXECUTORS = ("aot", "graph")
_SWITCHES = ("trace", "hook", "stream")
"""Options that are true or false."""


class NativeCompiler:
    """Compiles ``.tflite`` and ``.onnx`` models to C99 (see ``compilers.Compiler``)."""

    name = "native"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, Mistake]]:
        """Return (key, mistake) for each option that is unknown or has a value that is not accepted."""
        found = ((key, _check_option(key, value)) for key, value in options.items())
        return [(key, mistake) for key, mistake in found if mistake]

    def compile(self, request: CompileRequest) -> Library:
        """Compile the model of ``request``; raises as ``Compiler.compile``."""
        self._check(request)
        if request.npu is not None:
            from mlfbuild.native.npu import compile_for_npu

            return compile_for_npu(request, request.npu)
        from mlfbuild.native.build import compile_model

        return compile_model(request)

    def outline(self, request: CompileRequest) -> Library | None:
        """Return the names of the files that ``compile`` writes; they do not depend on the content of the model.

        For build systems that must know the files before they run a compiler. Paths are right and contents are not: see
        ``printing/file_plan``. ``None`` for a target with an NPU: only Vela decides how many command streams there are.
        Raises ``UsageError`` for options that exclude each other.
        """
        self._check(request)
        if request.npu is not None:
            return None
        from mlfbuild.native.c_calling_form import form_of
        from mlfbuild.native.printing import outline_library

        return outline_library(request.name, form_of(request))

    def _check(self, request: CompileRequest) -> None:
        from mlfbuild.native.request_checks import check_request

        refuse_options(self, request)
        if "tflm" in request.options and request.source.suffix.lower() == ".onnx":
            raise UsageError(
                "tflm-of-onnx",
                place=f"{request.name}: options.tflm",
                reason="selects numbers of TensorFlow Lite Micro, which does not run ONNX models",
                hint="remove it",
            )
        if request.executor not in {None, *EXECUTORS}:
            known = " or ".join(EXECUTORS)
            reason = f'the native compiler has no executor "{request.executor}"'
            raise UsageError("unknown-executor", place=f"{request.name}: executor", reason=reason, hint=f"use {known}")
        if request.npu is not None:
            self._check_npu(request)
        # Other models would overwrite inputs and outputs between runs.
        if request.options.get("io") == "arena" and request.placement.shares_workspace:
            raise UsageError(
                "workspace-cannot-be-shared",
                place=f"{request.name}: share-workspace",
                reason="with the option io: arena, the model's inputs and outputs are in its workspace between runs",
                hint="remove it from the list, or use io: caller",
            )
        if request.options.get("parameters") == REPLACEABLE:
            self._check_replaceable(request)
        elif "tree-room" in request.options:
            raise UsageError(
                "room-for-linked-trees",
                place=f"{request.name}: options.tree-room",
                reason="reserves memory for other trees, and the parameters of this model are linked",
                hint="remove it, or use parameters: replaceable",
            )
        if request.executor == "graph":
            self._check_graph(request)
        elif request.options.get("interface-api") == "packed":
            self._check_packed(request)
        check_request(request)

    def _check_npu(self, request: CompileRequest) -> None:
        """Refuse what an NPU's part of a network cannot do, or what one C file cannot contain."""
        options = request.options
        chosen = {
            "executor": request.executor == "graph",
            "options.stream": bool(options.get("stream")),
            "options.layout": options.get("layout") == "single-file",
            "options.signature": "signature" in options,
            "parameters": options.get("parameters") == REPLACEABLE,
        }
        for key, excluded in chosen.items():
            if excluded:
                raise UsageError(
                    "option-with-npu",
                    place=f"{request.name}: {key}",
                    reason="is not supported on a target with an NPU",
                    hint="remove it, or build the model for a target without npu",
                )

    def _check_replaceable(self, request: CompileRequest) -> None:
        """Refuse what a blob of parameters does not have: other forms of code, and constants in several sections."""
        options = request.options
        excluded = {
            "executor": request.executor == "graph",
            "options.interface-api": options.get("interface-api") == "packed",
            "options.layout": options.get("layout") == "single-file",
            "options.io": options.get("io") == "arena",
            "options.trace": bool(options.get("trace")),
            "options.trees": options.get("trees") == "code",
            **{f"placement.{name}": getattr(request.placement, name) is not None for name in CONSTANT_CLASSES},
        }
        place = next((key for key, found in excluded.items() if found), None)
        if place is not None:
            raise UsageError(
                "not-with-replaceable",
                place=f"{request.name}: {place}",
                reason="cannot be combined with parameters: replaceable, whose values are in one blob",
                hint="remove it, or use parameters: linked",
            )

    def _check_graph(self, request: CompileRequest) -> None:
        """Refuse options of the code that runs a network; for a graph, unpacking the archive generates it."""
        hint = "remove it, or use executor aot"
        if "interface-api" in request.options:
            place = f"{request.name}: options.interface-api"
            reason = "belongs to the AOT executor; the graph executor always calls packed functions"
            raise UsageError("interface-of-graph", place=place, reason=reason, hint=hint)
        if request.options.get("io") == "arena":
            place = f"{request.name}: options.io"
            reason = "belongs to the AOT executor; the graph executor keeps inputs and outputs in the caller's memory"
            raise UsageError("io-of-graph", place=place, reason=reason, hint=hint)
        if request.options.get("trace"):
            reason = "the graph executor traces all tensors without this option"
            raise UsageError("trace-of-graph", place=f"{request.name}: options.trace", reason=reason, hint=hint)

    # Trace and hook are functions of the C interface.
    def _check_packed(self, request: CompileRequest) -> None:
        """Refuse what changes the C interface, which code for TVM's AOT executor does not have."""
        added = [key for key in _SWITCHES if request.options.get(key)]
        added += ["io"] if request.options.get("io") == "arena" else []
        if added:
            raise UsageError(
                "packed-without-c-interface",
                place=f"{request.name}: options.{added[0]}",
                reason="adds to the C interface, which code with interface-api packed does not have",
                hint="remove it, or use interface-api c",
            )


def _check_option(key: str, value: OptionValue) -> Mistake | None:
    from mlfbuild.native.c_calling_form import INTERFACES, LAYOUTS
    from mlfbuild.native.frontends import CONSTANT, DIM, SIGNATURE, STATE
    from mlfbuild.native.graph import MAX_CONSTANTS
    from mlfbuild.native.settings import DEAD_CHANNELS, IO, MEMORY, TFLM, TREE_ROOM, TREES, size_of

    if key in _SWITCHES:
        return check_switch(value)
    if key.startswith(DIM):
        # bool is a subclass of int in Python, and true is not a size.
        positive = isinstance(value, int) and not isinstance(value, bool) and value > 0
        return None if positive else invalid_option("must be a whole number above 0")
    if key.startswith(CONSTANT):
        return None if isinstance(value, int | float) else invalid_option("must be a number, true or false")
    if key.startswith(STATE):
        # YAML reads a name such as 619 as a number.
        named = isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip()
        return None if named else invalid_option("must be the name of an output")
    if key == SIGNATURE:
        named = isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip()
        return None if named else invalid_option("must be the name of a signature")
    if key in {MAX_CONSTANTS, TREE_ROOM}:
        return None if size_of({key: value}, key) is not None else invalid_option("must be a size such as 64 MiB")
    choices = {
        "memory": MEMORY,
        "tflm": TFLM,
        "dead-channels": DEAD_CHANNELS,
        "io": IO,
        "trees": TREES,
        "parameters": PARAMETERS,
        "layout": LAYOUTS,
        "interface-api": INTERFACES,
    }
    if key not in choices:
        return unknown("option", key, (*choices, MAX_CONSTANTS, TREE_ROOM, *_SWITCHES))
    return None if value in choices[key] else invalid_option(f"must be one of {', '.join(choices[key])}")


NATIVE: NativeCompiler = NativeCompiler()
