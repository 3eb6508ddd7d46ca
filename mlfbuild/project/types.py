"""Project: what the project file says, checked and frozen. Nothing in here knows YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from mlfbuild.project.placement import Placement
from mlfbuild.project.problems import KeyPath, Position, Problem
from mlfbuild.project.program import Program

OptionValue = str | int | float | bool


@dataclass(frozen=True)
class Target:
    """One named device: its CPU, the board that QEMU emulates, a toolchain file of the project's own."""

    name: str
    cpu: str
    """Name in the table of CPUs."""
    board: str | None = None
    """Name in the table of boards; its CPU is ``cpu``."""
    toolchain: Path | None = None
    """CMake toolchain file to use instead of the CPU's own."""
    c_compiler: str | None = None
    """``gcc`` or ``clang``, whose toolchain file for the CPU is used; ``None`` is the CPU's default."""
    regions: Mapping[str, str] = field(default_factory=dict)
    """Memory region of the linker script by section: where the target's firmware has what models place in it."""


@dataclass(frozen=True)
class Budget:
    """What a model or an image may take at most, sizes in bytes; ``None`` is no limit."""

    flash: int | None = None
    ram: int | None = None
    stack: int | None = None
    """Where the stack is deepest: of the functions of a model, or of ``main`` with all that it calls."""
    instructions: int | None = None
    """Of one run of the model, or of each model of the image."""


@dataclass(frozen=True)
class BudgetFile:
    """A baseline: the sizes of images that somebody accepted, and what they may grow by."""

    path: Path
    growth: Decimal = Decimal(1)
    """Per cent."""


@dataclass(frozen=True)
class ModelSpec:
    """One network of the project."""

    name: str
    source: Path
    """The model file or archive, reached from the same folder as the project's path."""
    compiler: str
    executor: str | None
    """``aot`` or ``graph``; ``None`` is the compiler's default: ``aot``, or what the archive was exported for."""
    targets: tuple[str, ...]
    """Names of targets in the project, never empty."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    vectors: Mapping[str, Path] = field(default_factory=dict)
    """Vectors files by module of the source; under the empty name those of its only one."""
    placement: Placement = field(default_factory=Placement)
    program: Program | None = None
    """Who compiles it, where that is not mlfbuild."""
    budget: Budget = field(default_factory=Budget)
    license: str = ""
    """SPDX licence expression; empty where the project file says nothing."""


@dataclass(frozen=True)
class Provider:
    """Where the project has an external dependency from."""

    name: str
    """Short name in lower case, with hyphens: ``cmsis-nn``."""
    kind: str
    """``git``, ``path``, ``url`` or ``package``."""
    place: str
    """Address of the repository or of the archive, the folder as written, or the name of a CMake package."""
    path: Path | None = None
    """Folder of a ``path``, and of a repository on this machine: reached from the same folder as the project's path."""
    version: str = ""
    """Tag, branch or commit for ``git``; for the others what the project states of it. Empty where it does not."""
    sha256: str = ""
    """Of the archive, for ``url``."""
    target: str = ""
    """What a ``package`` calls its library."""
    sources: tuple[str, ...] = ()
    """Patterns of what is compiled; empty where they are known, or found."""
    include_dirs: tuple[str, ...] = ()
    """Empty where they are known, or found."""
    license: str = ""
    """SPDX licence expression."""
    compile_options: tuple[str, ...] = ()
    public_headers: bool = False
    bundle: bool = False
    """Whether archives that need it take its sources along."""
    commit: str = ""
    tree: str = ""
    """What ``version`` of a repository is, as ``mlfbuild.lock`` has it; empty as the project file is read."""
    unlocked: str = field(default="", compare=False, repr=False)
    """Why a build knows no ``commit``, with what to do about it."""
    where: str = field(default="", compare=False, repr=False)
    """What messages begin with: ``mlfbuild.yml:12:3: dependencies.cmsis-nn``. It decides nothing of a build."""

    @property
    def address(self) -> str:
        """What Git, or who downloads, is given: ``place``, and a repository on this machine as an absolute path."""
        return str(self.path.absolute()) if self.kind == "git" and self.path is not None else self.place


@dataclass(frozen=True)
class FirmwareSpec:
    """One firmware image: either ``sources`` of a plain program or ``cmake``, the folder of a CMakeLists.txt."""

    name: str
    models: tuple[str, ...]
    """Names of models in the project."""
    targets: tuple[str, ...]
    """Names of targets in the project, never empty."""
    sources: tuple[Path, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    cmake: Path | None = None
    params_binary: str | None = None
    """Section whose constants are also written to a file of their own."""
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class Project:
    """A project file without mistakes; every name in it leads somewhere."""

    path: Path
    root: Path
    """Folder of the project file; relative paths in the file start here and are already joined to it."""
    targets: Mapping[str, Target]
    models: Mapping[str, ModelSpec]
    firmware: Mapping[str, FirmwareSpec]
    budget_file: BudgetFile | None = None
    dependencies: Mapping[str, Provider] = field(default_factory=dict)
    """By short name, in file order."""
    positions: Mapping[KeyPath, Position] = field(default_factory=dict, compare=False, repr=False)

    def models_on(self, target: str, firmware: str | None = None) -> tuple[ModelSpec, ...]:
        """Return the models built for ``target``, all or those of one firmware, in file order."""
        wanted = self.models if firmware is None else self.firmware[firmware].models
        return tuple(model for name, model in self.models.items() if name in wanted and target in model.targets)

    def problems(self, found: Iterable[tuple[KeyPath, str]]) -> list[str]:
        """Return a line for each mistake found after reading, in file order.

        ``found`` has the way to the value and the reason: ``mlfbuild.yml:9:14: models.kws.source: reason``.
        """
        problems = [Problem(self._position(path), path, reason) for path, reason in found]
        return [f"{self.path}:{problem}" for problem in sorted(problems, key=lambda problem: problem.position)]

    def _position(self, path: KeyPath) -> Position:
        found = (self.positions.get(path[:end]) for end in range(len(path), -1, -1))
        return next((position for position in found if position), Position(1, 1))
