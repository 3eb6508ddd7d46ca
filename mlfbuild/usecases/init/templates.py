"""The ways to build a new project: one entry for each template, and how their files are filled in.

The files are in ``mlfbuild/templates``; in those of mlfbuild, words such as ``@MODEL@`` are replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlfbuild.core import UsageError, suggestion

TREE = "mlf"
"""Folder of the committed tree."""
CMAKE_FILE = "cmake/mlfbuild.cmake"
"""The file with which CMake finds mlfbuild's CMake package, regardless of the toolchain."""
SCHEMA_FILE = "mlfbuild.schema.json"
"""The JSON Schema of the project file, for editors; the project file's first line names it."""
SCONS_TOOL = "site_scons/site_tools/mlf.py"
"""The file with which SCons finds the tool ``mlf``."""
QEMU = "qemu"
"""Target that runs the models if the firmware's own target has no board."""


@dataclass(frozen=True)
class Template:
    """One way to build: the differences between templates, apart from the build files."""

    files: Mapping[str, str]
    """Files of the project by name, which may contain ``@WORD@``, and their templates."""
    build: str
    run: str
    """Empty if the firmware waits for a host."""
    verify: str
    """Commands."""
    needs: str
    """The tools to install, as a sentence of the README."""
    about: tuple[tuple[str, str], ...]
    """Lines for the README's table of files."""
    targets: str
    """Targets in the project file."""
    firmware: str = ""
    """Firmware in the project file, if mlfbuild builds it."""
    ignored: str = ""
    """Further lines of .gitignore."""
    main: str = "common/main.c"
    """Template of ``src/main.c``."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Files of the project, and the files in ``mlfbuild/runtime`` that they are copies of."""
    device_files: Mapping[str, str] | None = None
    """Other and further files for several devices or a microcontroller; ``None`` if projects have one device."""
    firmware_of_devices: str = ""
    """Firmware in the project file if ``device_files`` are used."""
    commits_tree: bool = False
    """Whether the models' C is committed, so that the build needs no mlfbuild."""


PROJECT_API, PROJECT_API_EXAMPLE = "project-api", "project-api-example"
PLAIN = "plain"
"""The prefix of users' templates."""
PROJECT_API_SERVER = "microtvm_api_server.py"
"""The file with which TVM's Project API client starts the server of a project."""
_RPC_SOURCES = ("mlf_rpc.c", "mlf_rpc_calls.c", "mlf_rpc_values.c")
_RPC_HEADERS = ("mlf_rpc.h", "mlf_rpc_packets.h", "mlf_rpc_values.h")
_PROJECT_API = Template(
    files={PROJECT_API_SERVER: "project-api/microtvm_api_server.py.in"},
    build="mlfbuild build",
    run="",
    verify="mlfbuild verify",
    needs="The build requires mlfbuild, @GCC@, CMake and Ninja. A host with TVM opens the transport of this project.",
    about=(
        (PROJECT_API_SERVER, "the Project API server, which TVM starts"),
        ("src/mlf_rpc*", "the device's side of TVM's sessions"),
        ("build/", "all generated files"),
    ),
    targets="  @TARGET@: {cpu: @CPU@, board: @BOARD@}   # a board that QEMU emulates",
    firmware=f"\nfirmware:\n  app: {{sources: [src/main.c, {', '.join(f'src/{name}' for name in _RPC_SOURCES)}]}}",
    main="project-api/main.c",
    copies={f"src/{name}": f"rpc/{name}" for name in (*_RPC_SOURCES, *_RPC_HEADERS)},
)

TEMPLATES: Mapping[str, Template] = {
    "scons": Template(
        files={"SConstruct": "scons/SConstruct", SCONS_TOOL: "scons/mlf.py.in"},
        device_files={"SConstruct": "scons/SConstruct.device", "CMakeLists.txt": "scons/CMakeLists.txt"},
        firmware_of_devices="\nfirmware:\n  app: {cmake: .}   # the CMakeLists.txt in this folder",
        build="scons",
        run="scons run",
        verify="scons verify",
        needs="The build requires mlfbuild, @GCC@, CMake and Ninja, which SCons runs for the cross build.",
        about=(
            ("SConstruct", "the build; site_scons/ is where SCons finds mlfbuild"),
            ("build/", "all generated files; `scons -c` removes them"),
        ),
        targets="  @TARGET@: {cpu: @CPU@, board: @BOARD@}   # a board that QEMU emulates",
        firmware="\nfirmware:\n  app: {sources: [src/main.c]}",
        ignored=".sconsign.dblite\n__pycache__/",
    ),
    "cmake": Template(
        files={
            "CMakeLists.txt": "cmake/CMakeLists.txt",
            "CMakePresets.json": "cmake/CMakePresets.json",
            CMAKE_FILE: "cmake/mlfbuild.cmake",
            "cmake/@CPU@.cmake": "cmake/toolchain.cmake",
        },
        device_files={"CMakeLists.txt": "cmake/CMakeLists.device.txt"},
        build="cmake --preset @TARGET@ && cmake --build --preset @TARGET@",
        run="cmake --build --preset @TARGET@ --target run",
        verify="mlfbuild verify",
        needs="The build requires mlfbuild, @GCC@, CMake 3.22 or later, and Ninja.",
        about=(
            ("CMakeLists.txt", "the build, which also compiles the models"),
            ("CMakePresets.json", "the board: its toolchain, and the emulator for `run` and `ctest`"),
            (CMAKE_FILE, "what finds mlfbuild's CMake package"),
            ("cmake/@CPU@.cmake", "the toolchain: compiler and its flags for the core"),
            ("build/", "all generated files"),
        ),
        targets="  @TARGET@: {cpu: @CPU@, board: @BOARD@, toolchain: cmake/@CPU@.cmake}",
    ),
    "bare-metal": Template(
        files={"Makefile": "bare-metal/Makefile", ".gitattributes": "bare-metal/gitattributes"},
        build="make",
        run="make run",
        verify=f"mlfbuild verify --target {QEMU}",
        needs=(
            "The build requires GNU Make and @GCC@, but no mlfbuild and no Python. You need mlfbuild to "
            "change a\nmodel (`make models`) or to check it (`verify`, which also requires CMake and Ninja)."
        ),
        about=(
            ("Makefile", "the build"),
            ("board/", "start-up code, linker scripts and console of the board, yours to change"),
            (f"{TREE}/", "the model as C, which `make models` writes: commit it, but do not edit it"),
            ("build/", "all generated files"),
        ),
        targets=(
            "  @TARGET@: {cpu: @CPU@}   # the firmware, with its own board/\n"
            f"  {QEMU}: {{cpu: @CPU@, board: @BOARD@}}   # `mlfbuild verify` runs the models here"
        ),
        commits_tree=True,
    ),
    PROJECT_API: _PROJECT_API,
}
"""Templates by name; the first is the default."""

_PLAIN = replace(
    _PROJECT_API,
    files={},
    run="mlfbuild run-firmware",
    needs="The build requires mlfbuild, @GCC@, CMake and Ninja.",
    about=_PROJECT_API.about[2:],
    firmware=TEMPLATES["scons"].firmware,
    main="common/main.c",
    copies={},
)
_OTHERS: Mapping[str, Template] = {
    PROJECT_API_EXAMPLE: replace(
        _PLAIN, files=_PROJECT_API.files, needs=_PROJECT_API.needs, about=(_PROJECT_API.about[0], *_PLAIN.about)
    ),
    PLAIN: _PLAIN,
}
"""Templates that no option names."""


def template_called(name: str) -> Template:
    """Return the template ``name``; raises ``UsageError`` with the nearest name."""
    if name in _OTHERS:
        return _OTHERS[name]
    if name not in TEMPLATES:
        reason = f"unknown template{suggestion(name, TEMPLATES)}"
        hint = f"choose {', '.join(TEMPLATES)}, or a folder or repository with mlfbuild-template.yml"
        raise UsageError("unknown-template", place=f"--template {name}", reason=reason, hint=hint)
    return TEMPLATES[name]


_PACKAGE = Path(__file__).resolve().parents[2]
_TEMPLATES = _PACKAGE / "templates"
_WORD = re.compile(r"@([A-Z_]+)@")


def filled(template: str, **words: str) -> str:
    """Return the text of ``template`` (``cmake/CMakeLists.txt``) with ``words`` in place of each ``@WORD@``.

    A line that contains only a word whose text is empty is removed.
    """
    lines = []
    for line in (_TEMPLATES / template).read_text(encoding="utf-8").splitlines():
        alone = _WORD.fullmatch(line.strip())
        if alone and not words[alone[1]]:
            continue
        lines.append(worded(line, words))
    return "\n".join(lines).rstrip("\n") + "\n"


def worded(text: str, words: Mapping[str, str]) -> str:
    """Return ``text`` with ``words`` in place of each ``@WORD@``.

    Raises ``KeyError`` for a word without a text: templates and callers belong together.
    """
    return _WORD.sub(lambda match: words[match[1]], text)


def runtime_text(name: str) -> str:
    """Return the file ``name`` of ``mlfbuild/runtime``."""
    return (_PACKAGE / "runtime" / name).read_text(encoding="utf-8")


def project_api_server() -> str:
    """Return the Project API server, which is the same in every folder."""
    return (_TEMPLATES / "project-api/microtvm_api_server.py.in").read_text(encoding="utf-8")


def schema_text() -> str:
    """Return the text of the JSON Schema of the project file, as `mlfbuild schema` prints it."""
    from mlfbuild.project import json_schema  # needs pydantic, which few templates do

    return f"{json.dumps(json_schema(), indent=2)}\n"
