"""Make the files of a new project, except the model and what is compiled from it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from mlfbuild.jobs.tree import target_files
from mlfbuild.library import Library
from mlfbuild.library.cgen import member_name
from mlfbuild.library.keys import port_problem
from mlfbuild.targets import GCC, Board, Cpu, compiler_program, development_board
from mlfbuild.usecases.init.devices import ProjectDevice
from mlfbuild.usecases.init.main_c import callers, main_c, sample_h
from mlfbuild.usecases.init.project_network import EXAMPLE, ProjectNetwork
from mlfbuild.usecases.init.sample import Sample, why_no_verify
from mlfbuild.usecases.init.templates import SCHEMA_FILE, Template, filled, runtime_text, schema_text, worded

# Words that YAML 1.1 reads as a bool or as nothing. ``n`` and ``y`` are usual names of tensors.
_NOT_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


_PRESETS = "CMakePresets.json"
_LISTS = ("configurePresets", "buildPresets", "testPresets")
_ON_QEMU = {
    "target": {"run": "scons target=@EMULATED@ run", "verify": "scons target=@EMULATED@ verify"},
    "--preset": {
        "run": "cmake --preset @EMULATED@ && cmake --build --preset @EMULATED@ --target run",
        "verify": "mlfbuild verify --target @EMULATED@",
    },
}
"""Commands of a project whose first target is a microcontroller."""
_BOARD_FOLDER = ("board/", "start-up code, linker script and semihosting of the microcontroller, yours to change")


def _debugger(device: ProjectDevice) -> str:
    """Return the GDB server for the debugger on the user's board; empty for other devices."""
    board = None if device.is_emulated else development_board(device.target)
    return board.server if board else ""


def interface_names(library: Library) -> dict[str, list[str]]:
    """Return the names in C of a network, by ``inputs`` and ``outputs``: the value of the key ``interface``.

    With it, the next version of the model keeps them. Empty if one of them could not be chosen: the key would be
    refused. The native compiler makes one module of a model.
    """
    (module,) = library.modules
    kinds = {"inputs": module.inputs, "outputs": module.outputs}
    found = {kind: [member_name(tensor.name) for tensor in tensors] for kind, tensors in kinds.items() if tensors}
    names = [name for kind in found.values() for name in kind]
    return {} if any(map(port_problem, names)) or len({*names}) < len(names) else found


@dataclass(frozen=True)
class Repo:
    """A project and its files."""

    title: str
    """Name of its folder, of letters, digits, ``_`` and ``-``."""
    template: Template
    network: ProjectNetwork
    sample: Sample | None
    devices: tuple[ProjectDevice, ...]
    """The targets of the project; at least one is emulated."""

    @property
    def cpu(self) -> Cpu:
        """The core of the first target."""
        return self.devices[0].cpu

    @property
    def target(self) -> str:
        """The name of the first target in the project file."""
        return self.devices[0].target

    @property
    def emulated(self) -> ProjectDevice:
        """The first target that QEMU emulates."""
        return next(device for device in self.devices if device.is_emulated)

    @property
    def board(self) -> Board:
        """Its board, which runs the firmware and its verification."""
        return self.emulated.board

    @property
    def files_of_template(self) -> dict[str, str]:
        """The files of the template for the devices."""
        return {**self.template.files, **(self.template.device_files or {} if self._is_for_devices else {})}

    @property
    def _is_for_devices(self) -> bool:
        # SCons builds the sources for several emulated boards without further files.
        return not self.devices[0].is_emulated or (len(self.devices) > 1 and _PRESETS in self.template.files)

    @property
    def vectors(self) -> str:
        """Path of the vectors in the project; empty if there are none for ``verify``."""
        return self.sample.file if self.sample else ""

    @property
    def commands(self) -> dict[str, str]:
        """Commands to run next: ``lock`` for dependencies, ``build``, ``run``, and ``verify`` for vectors."""
        commands = {"lock": "mlfbuild lock"} if self.network.dependencies else {}
        commands |= {"build": self.template.build}
        if self.template.run:
            commands["run"] = self.template.run
        if self.vectors:
            commands["verify"] = self.template.verify
        if not self.devices[0].is_emulated:
            where = "--preset" if _PRESETS in self.template.files else "target"
            commands |= {name: text for name, text in _ON_QEMU[where].items() if name in commands}
        own = next((device.target for device in self.devices if _debugger(device)), None)
        if own is not None:
            commands["flash"] = f"mlfbuild flash --target {own}"
        return {name: worded(command, self.words) for name, command in commands.items()}

    @property
    def values(self) -> dict[str, object]:
        """Return what templates of users can contain besides their variables."""
        modules, headers = callers(self.network.library)
        return {
            "project": self.title,
            "target": self.target,
            "board": self.board.name,
            "emulator": self.board.emulator,
            "cpu": self.cpu.name,
            "cpu_flags": " ".join(self.cpu.flags),
            "compiler": self._toolchain["GCC"],
            "model": self.network.name,
            "source": self.network.file,
            "vectors": self.vectors,
            "modules": modules,
            "headers": headers,
        }

    def files(self) -> dict[str, bytes]:
        """Return the files by their paths in the project; the committed tree is not among them."""
        texts = {
            "mlfbuild.yml": self._project_file(),
            **{worded(path, self.words): filled(text, **self.words) for path, text in self.files_of_template.items()},
            **(self._of_each_device() if self._is_for_devices and _PRESETS in self.template.files else {}),
            **{f"board/{device.target}.ld": device.script for device in self.devices if not device.is_emulated},
            **{path: runtime_text(name) for path, name in self.template.copies.items()},
            "src/main.c": main_c(self.network.library, self._shown_sample, self.template.main),
        }
        if self._shown_sample is not None:
            texts["src/sample.h"] = self._sample_h(self._shown_sample)
        texts[SCHEMA_FILE] = schema_text()
        texts[".gitignore"] = filled("common/gitignore", IGNORED=self.template.ignored)
        texts["README.md"] = self._readme()
        files = {path: text.encode() for path, text in texts.items()}
        if self.template.commits_tree or not self.devices[0].is_emulated:
            files |= self._board_files()
        files[self.network.file] = self.network.content
        if self.sample and self.vectors:
            files[self.vectors] = self.sample.vectors
        return files

    def _of_each_device(self) -> dict[str, str]:
        """Return the presets of all devices, and their toolchain files."""
        texts: dict[str, str] = {}
        presets: dict[str, Any] = {}
        for device in self.devices:
            words = replace(self, devices=(device, self.emulated)).words
            texts[f"cmake/{device.cpu.name}.cmake"] = filled("cmake/toolchain.cmake", **words)
            made = json.loads(filled("cmake/CMakePresets.json", **words))
            variables = made["configurePresets"][0]["cacheVariables"]
            variables["TARGET"] = device.target
            if not device.is_emulated:
                del variables["CMAKE_CROSSCOMPILING_EMULATOR"], made["testPresets"]
            presets = {**made, **{key: presets.get(key, []) + made.get(key, []) for key in _LISTS}}
        return {**texts, _PRESETS: f"{json.dumps(presets, indent=2)}\n"}

    @property
    def words(self) -> dict[str, str]:
        """The content of mlfbuild's templates for the first target, and for the first emulated one."""
        return {
            "PROJECT": self.title,
            "TARGET": self.target,
            "EMULATED": self.emulated.target,
            "BOARD": self.board.name,
            "EMULATOR": self.board.emulator,
            "OPTIONS": "".join(f" {option}" for option in self.board.options),
            "OPTIONS_LIST": "".join(f";{option}" for option in self.board.options),
            **self._toolchain,
            "CPU": self.cpu.name,
            "CPU_TITLE": self.cpu.title,
            "CPU_FLAGS": " ".join(self.cpu.flags),
            "OR_VERIFY": ", `scons verify` checks the network there" if self.vectors else "",
            "VERIFY": 'env.Alias("verify", env.MlfVerify(models))' if self.vectors else "",
        }

    @property
    def _toolchain(self) -> dict[str, str]:
        gcc = compiler_program(self.cpu, GCC)
        picolibc = not self.cpu.is_arm  # Debian's compiler for RISC-V has no other C library
        return {
            "GCC": gcc,
            "AR": f"{gcc.removesuffix('gcc')}ar",
            "C_LIBRARY": "picolibc" if picolibc else "nano",
            "LIBRARY_TITLE": "picolibc" if picolibc else "newlib",
            "SPECS": " --specs=picolibc.specs" if picolibc else "",  # board.cmake adds those of newlib
        }

    @property
    def _shown_sample(self) -> Sample | None:
        return self.sample if self.template.run else None  # a host sends its own inputs

    def _sample_h(self, sample: Sample) -> str:
        origin = f"case 0 of {self.vectors or 'the vectors that were passed to `mlfbuild init`'}"
        if sample.computed and not self.vectors:
            origin = "computed by mlfbuild from the model file, for pseudo-random inputs"
        return sample_h(self.network.library, sample, origin)

    def _board_files(self) -> dict[str, bytes]:
        files = target_files([], self.board, self.cpu)
        others = (".cmake",) if self.template.commits_tree else (".mk", f"{self.board.name}.ld")
        unused = (*others, "SConscript")
        return {path: data for path, data in files.items() if path.startswith("board/") and not path.endswith(unused)}

    # Documents -------------------------------------------------------------------------------------------------------

    def _project_file(self) -> str:
        lines = [f"  {line}   # `mlfbuild lock` gets it" for line in self.network.dependencies]
        return filled(
            "common/mlfbuild.yml",
            TARGETS="\n".join(map(self._target_lines, self.devices)),
            MODEL=self.network.name,
            SOURCE=self.network.file,
            INTERFACE=self._interface(),
            VECTORS=f"vectors: {self.vectors}   # inputs and outputs for `mlfbuild verify`" if self.vectors else "",
            DEPENDENCIES="\n".join(["\ndependencies:", *lines]) if lines else "",
            FIRMWARE=self.template.firmware_of_devices if self._is_for_devices else self.template.firmware,
        )

    def _target_lines(self, device: ProjectDevice) -> str:
        if not device.is_emulated:
            own = f", toolchain: cmake/{device.cpu.name}.cmake" if _PRESETS in self.template.files else ""
            keys = device.keys.replace("}", f"{own}}}")
            server = _debugger(device)
            flashed = f"`mlfbuild flash` uses {server}" if server else "add `runner` to flash it"
            what = "board" if development_board(device.target) else "microcontroller"
            return f"  {device.target}: {keys}   # your {what}; {flashed}"
        words = {"TARGET": device.target, "CPU": device.cpu.name, "BOARD": device.board.name}
        return worded(self.template.targets, words)

    def _interface(self) -> str:
        """Return the key with the present names, empty for an archive or without names."""
        kinds = interface_names(self.network.library) if self.network.compiler == "native" else {}
        if not kinds:
            return ""
        chosen = ", ".join(f"{kind}: [{', '.join(map(_scalar, names))}]" for kind, names in kinds.items())
        return f"interface: {{{chosen}}}   # names in C, also of the next version of the model"

    def _readme(self) -> str:
        width = max(len(command) for command in self.commands.values())
        what = {
            "lock": "get the libraries that the network's code requires, then commit mlfbuild.lock",
            "build": "build",
            "run": f"run it on QEMU's {self.board.name}",
            "verify": "check every output on QEMU",
            "flash": "write it to your board",
        }
        example = ", which detects one of four tones in 32 samples of sound"
        rows = [
            ("mlfbuild.yml", "models and targets"),
            (SCHEMA_FILE, "JSON Schema of the project file, for editors; `mlfbuild schema` prints it"),
            (self.network.file, f"the network{example if self.network.path == EXAMPLE else ''}"),
            *([(self.vectors, "inputs and expected outputs")] if self.vectors else []),
            ("src/", "the firmware: `main.c`" + (", with a case in `sample.h`" if self._shown_sample else "")),
            *((worded(path, self.words), text) for path, text in self.template.about),
            *([] if self.devices[0].is_emulated else [_BOARD_FOLDER]),
        ]
        return filled(
            "common/README.md",
            NAME=self.title,
            MODEL=self.network.name,
            DEVICES=self._devices_text(),
            COMMANDS="\n".join(f"{self.commands[name]:{width}}   # {what[name]}" for name in self.commands),
            NEEDS=f"{worded(self.template.needs, self.words)}\nThe emulator is {self.board.emulator}.",
            FILES="\n".join(f"| `{path}` | {text} |" for path, text in rows),
            NEXT=self._next_steps(),
        )

    def _devices_text(self) -> str:
        own, emulated = (
            [f"{device.board.name} ({device.cpu.name})" for device in self.devices if device.is_emulated == kind]
            for kind in (False, True)
        )
        boards = f"the board{'s' if len(emulated) > 1 else ''} {' and '.join(emulated)}, which QEMU emulates"
        return " and on ".join([*(f"the microcontroller {name}" for name in own), boards])

    def _next_steps(self) -> str:
        unverified = why_no_verify(self.network, self.board)
        if unverified:
            return f"{unverified}."
        if self.sample is None:
            return (
                f"To check the outputs, write inputs and expected outputs to `tests/{self.network.name}.npz` (arrays "
                "`in0`.. and `out0`..,\nthe first axis is the case) and add `vectors:` with its path to the model in "
                "`mlfbuild.yml`.\n`mlfbuild verify` then checks every output."
            )
        if self.sample.computed:
            return (
                f"mlfbuild computed the expected outputs itself. `mlfbuild vectors {self.network.name}` has another "
                "implementation compute\nthem, such as TensorFlow Lite Micro; run it again when the model has changed."
            )
        return ""


def _scalar(name: str) -> str:
    """Return ``name`` as a text in YAML, in quotes if YAML reads it as another value."""
    return f'"{name}"' if name.lower() in _NOT_TEXT else name
