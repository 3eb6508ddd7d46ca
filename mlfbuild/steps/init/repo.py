"""The files of a new project, but for the model and what is made of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.errors import UsageError
from mlfbuild.firmware.target_tree import target_files
from mlfbuild.manifest import suggestion
from mlfbuild.steps.init.main_c import main_c, sample_h
from mlfbuild.steps.init.network import EXAMPLE, Network
from mlfbuild.steps.init.sample import Sample, why_no_verify
from mlfbuild.steps.init.text import filled
from mlfbuild.targets import CPUS, Board, Cpu

TREE = "mlf"
"""Folder of the committed tree."""
QEMU = "qemu"
"""Target of models where the firmware's own target has no board."""


@dataclass(frozen=True)
class Template:
    """One way to build, with all that differs between ways but the build files themselves."""

    files: Mapping[str, str]
    """File of the project -> template; names may hold words."""
    build: str
    run: str
    verify: str
    """Commands."""
    needs: str
    """What is to be installed, for people."""
    about: tuple[tuple[str, str], ...]
    """Lines of the table of files, what is special."""
    ignored: str = ""
    """Further lines of .gitignore."""
    commits_tree: bool = False
    """Whether the models' C is committed, so that the build needs no mlfbuild."""


TEMPLATES: Mapping[str, Template] = {
    "scons": Template(
        files={"SConstruct": "scons/SConstruct", "site_scons/site_tools/mlf.py": "scons/mlf.py.in"},
        build="scons",
        run="scons run",
        verify="scons verify",
        needs="The build needs mlfbuild, arm-none-eabi-gcc, CMake and Ninja, which SCons calls for the cross build.",
        about=(
            ("SConstruct", "the build; site_scons/ is where SCons finds mlfbuild"),
            ("build/", "all that is generated; `scons -c` removes it"),
        ),
        ignored=".sconsign.dblite\n__pycache__/",
    ),
    "cmake": Template(
        files={
            "CMakeLists.txt": "cmake/CMakeLists.txt",
            "CMakePresets.json": "cmake/CMakePresets.json",
            "cmake/@CPU@.cmake": "cmake/toolchain.cmake",
        },
        build="cmake --preset @TARGET@ && cmake --build --preset @TARGET@",
        run="cmake --build --preset @TARGET@ --target run",
        verify="mlfbuild verify",
        needs="The build needs mlfbuild, arm-none-eabi-gcc, CMake 3.22 or later, and Ninja.",
        about=(
            ("CMakeLists.txt", "the build; models are made in it, when they are needed"),
            ("CMakePresets.json", "the board: toolchain, and the emulator that `run` and `ctest` use"),
            ("cmake/@CPU@.cmake", "the toolchain: compiler and its flags for the core"),
            ("build/", "all that is generated"),
        ),
    ),
    "bare-metal": Template(
        files={"Makefile": "bare-metal/Makefile", ".gitattributes": "bare-metal/gitattributes"},
        build="make",
        run="make run",
        verify=f"mlfbuild verify --target {QEMU}",
        needs=(
            "The build needs GNU Make and arm-none-eabi-gcc: no mlfbuild, and no Python. mlfbuild is for those who "
            "change a\nmodel (`make models`) or check one (`verify`, which also needs CMake and Ninja)."
        ),
        about=(
            ("Makefile", "the build"),
            ("board/", "start-up code, linker scripts and console of the board, for you to change"),
            (f"{TREE}/", "the model as C, written by `make models`; commit it, and do not edit it"),
            ("build/", "all that is generated"),
        ),
        commits_tree=True,
    ),
}
"""Every template by its name; the first is the default."""


def template_called(name: str) -> Template:
    """Return the template called ``name``; raises ``UsageError`` with the nearest name there is."""
    if name not in TEMPLATES:
        hint = suggestion(name, TEMPLATES) or f" (known: {', '.join(TEMPLATES)})"
        raise UsageError(f"{name}: unknown template{hint}")
    return TEMPLATES[name]


@dataclass(frozen=True)
class Repo:
    """What a project is, and its files."""

    title: str
    """Name of its folder, in letters, digits, ``_`` and ``-``."""
    template: Template
    network: Network
    sample: Sample | None
    board: Board

    @property
    def cpu(self) -> Cpu:
        """The board's core."""
        return CPUS[self.board.cpu]

    @property
    def target(self) -> str:
        """The target's name in the project file."""
        return self.cpu.name.removeprefix("cortex-")

    @property
    def vectors(self) -> str:
        """Path of the vectors in the project; empty where ``verify`` has none."""
        return self.sample.file if self.sample else ""

    @property
    def commands(self) -> dict[str, str]:
        """The commands to begin with: ``build``, ``run``, and ``verify`` where there are vectors."""
        words = {"TARGET": self.target}
        commands = {"build": self.template.build, "run": self.template.run}
        if self.vectors:
            commands["verify"] = self.template.verify
        return {name: _named(command, words) for name, command in commands.items()}

    def files(self) -> dict[str, bytes]:
        """Return the files by their paths in the project; the committed tree is not among them."""
        texts = {
            "mlfbuild.yml": self._project_file(),
            **{_named(path, self._words): filled(text, **self._words) for path, text in self.template.files.items()},
            "src/main.c": main_c(self.network.library, self.sample),
        }
        if self.sample:
            texts["src/sample.h"] = sample_h(self.network.library, self.sample, self._origin)
        texts[".gitignore"] = filled("common/gitignore", IGNORED=self.template.ignored)
        texts["README.md"] = self._readme()
        files = {path: text.encode() for path, text in texts.items()}
        if self.template.commits_tree:
            files |= self._board_files()
        files[self.network.file] = self.network.content
        if self.sample and self.vectors:
            files[self.vectors] = self.sample.vectors
        return files

    @property
    def _words(self) -> dict[str, str]:
        return {
            "PROJECT": self.title,
            "TARGET": self.target,
            "BOARD": self.board.name,
            "CPU": self.cpu.name,
            "CPU_TITLE": self.cpu.title,
            "CPU_FLAGS": " ".join(self.cpu.flags),
            "OR_VERIFY": ", `scons verify` checks the network there" if self.vectors else "",
            "VERIFY": 'env.Alias("verify", env.MlfVerify(models))' if self.vectors else "",
        }

    @property
    def _origin(self) -> str:
        assert self.sample is not None
        if self.sample.computed:
            return "worked out by mlfbuild from the model file, for inputs without any meaning"
        return f"case 0 of {self.vectors or 'the vectors that `mlfbuild init` was given'}"

    def _board_files(self) -> dict[str, bytes]:
        files = target_files([], self.board, self.cpu)
        return {path: data for path, data in files.items() if path.startswith("board/") and _is_for_make(path)}

    # For people ------------------------------------------------------------------------------------------------------

    def _project_file(self) -> str:
        cpu, board = self.cpu.name, self.board.name
        if self.template.commits_tree:
            targets = f"  {self.target}: {{cpu: {cpu}}}   # the firmware; board/ is its own\n"
            targets += f"  {QEMU}: {{cpu: {cpu}, board: {board}}}   # where `mlfbuild verify` runs the models"
        elif "cmake/@CPU@.cmake" in self.template.files:
            targets = f"  {self.target}: {{cpu: {cpu}, board: {board}, toolchain: cmake/{cpu}.cmake}}"
        else:
            targets = f"  {self.target}: {{cpu: {cpu}, board: {board}}}   # a board that QEMU emulates"
        return filled(
            "common/mlfbuild.yml",
            TARGETS=targets,
            MODEL=self.network.name,
            SOURCE=self.network.file,
            VECTORS=f"vectors: {self.vectors}   # inputs and outputs, for `mlfbuild verify`" if self.vectors else "",
            FIRMWARE="\nfirmware:\n  app: {sources: [src/main.c]}" if "SConstruct" in self.template.files else "",
        )

    def _readme(self) -> str:
        width = max(len(command) for command in self.commands.values())
        what = {"build": "build", "run": f"run it on QEMU's {self.board.name}", "verify": "check every output there"}
        rows = [
            ("mlfbuild.yml", "models and targets"),
            (self.network.file, self._about_model()),
            *([(self.vectors, "inputs and expected outputs")] if self.vectors else []),
            ("src/", "the firmware: `main.c`" + (", with a case in `sample.h`" if self.sample else "")),
            *((_named(path, self._words), text) for path, text in self.template.about),
        ]
        return filled(
            "common/README.md",
            NAME=self.title,
            MODEL=self.network.name,
            BOARD=self.board.name,
            CPU=self.cpu.name,
            COMMANDS="\n".join(f"{self.commands[name]:{width}}   # {what[name]}" for name in self.commands),
            NEEDS=f"{self.template.needs} The emulator is qemu-system-arm.",
            FILES="\n".join(f"| `{path}` | {text} |" for path, text in rows),
            NEXT=self._next_steps(),
        )

    def _about_model(self) -> str:
        if self.network.path == EXAMPLE:
            return "the network: tells which of four tones is in 32 samples of sound"
        return "the network"

    def _next_steps(self) -> str:
        unverified = why_no_verify(self.network, self.board)
        if unverified:
            return f"{unverified}."
        if self.sample is None:
            return (
                f"To check the numbers, put inputs and expected outputs into a file `tests/{self.network.name}.npz` "
                "(arrays `in0`.. and `out0`..,\nthe first axis is the case) and add `vectors:` with its path to the "
                "model in `mlfbuild.yml`."
            )
        if self.sample.computed:
            return (
                "mlfbuild worked the expected outputs out itself, by another implementation of each operator than the "
                "firmware's.\nVectors from where the network was trained tell more: put them in their place."
            )
        return ""


def _is_for_make(path: str) -> bool:
    return not path.endswith((".cmake", "SConscript"))


def _named(text: str, words: Mapping[str, str]) -> str:
    return re.sub("@([A-Z]+)@", lambda match: words[match[1]], text)
