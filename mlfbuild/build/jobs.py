"""Jobs: what is to be made, where it goes, and everything the result depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlfbuild.build.tree.dependencies import DEPENDENCIES_FOLDER
from mlfbuild.build.tree.placement import LINKER_SCRIPT, PLACEMENT_FOLDER, PlacedSection
from mlfbuild.compilers import CompileRequest
from mlfbuild.project import Budget, BudgetFile, Provider
from mlfbuild.targets import Board, Cpu, shared_toolchain_files


@dataclass(frozen=True)
class CompileJob:
    """One model for one target: compiled into ``archive``, unpacked into ``tree``."""

    target: str
    compiler: str
    request: CompileRequest
    archive: Path
    tree: Path
    ram_limit: int | None = None
    """Bytes of RAM on the target's board: an arena beyond it is refused."""
    verified_on: str | None = None
    """Board, or ``host``, for which the tree also has the sources of test firmware; ``None`` for none."""
    bundles: tuple[Provider, ...] = ()
    """Dependencies that the archive takes along where it needs them."""
    locked: str | None = None
    """SHA-256 that the archive must have, in a frozen build: no other one is unpacked."""

    @property
    def model(self) -> str:
        """The model's name."""
        return self.request.name

    @property
    def made_first(self) -> bool:
        """Whether a build must make its archive before it can be configured: its compiler is a program.

        No other place lists the archive's files and the libraries that they need.
        """
        return self.request.program is not None

    @property
    def title(self) -> str:
        """What messages call this job."""
        return f"{self.model} for {self.target}"

    def module_title(self, module: str, modules: Sequence[str]) -> str:
        """Return what messages call ``module``, one of the ``modules`` in the job's archive."""
        return self.model if list(modules) == [self.model] else f"{self.model} (module {module})"

    def settings(self) -> str:
        """Return all that decides the archive, but for the model file's and the generator's content, as canonical JSON.

        Free of paths, so that it is equal in every checkout, and of the target: those with the same CPU share archives.
        """
        request = self.request
        settings: dict[str, Any] = {
            "model": request.name,
            "source": request.source.name,
            "compiler": self.compiler,
            "cpu": request.cpu.name,
            "executor": request.executor,
            "options": dict(request.options),
            "placement": asdict(request.placement),
        }
        if request.program is not None:  # where it is found decides nothing
            settings["command"] = request.program.command
        return json.dumps(settings, sort_keys=True)

    def tree_settings(self) -> str:
        """Return all that decides whether and how the archive is unpacked, but for its content, as canonical JSON."""
        return json.dumps({"archive": self.settings(), "ram": self.ram_limit, **self._frozen()})

    def unpack_settings(self) -> str:
        """Return all that decides whether and how the archive is unpacked, but for its content and the model's name.

        As canonical JSON; equal for most models of a target.
        """
        placement = asdict(self.request.placement)
        return json.dumps({"placement": placement, "ram": self.ram_limit, "verify": self.verified_on, **self._frozen()})

    def _frozen(self) -> dict[str, str]:
        return {} if self.locked is None else {"locked": self.locked}

    def sharing_key(self) -> tuple[str, str]:
        """Return what is equal for jobs whose archives are equal: settings and place of the model file."""
        return self.settings(), str(self.request.source.absolute())


@dataclass(frozen=True)
class TargetJob:
    """One target of a project: its models' trees and the fragment that names them all."""

    name: str
    cpu: Cpu
    board: Board | None
    toolchain: Path | None
    """CMake toolchain file; ``None`` for this machine's own compiler."""
    tree: Path
    """Folder of the aggregate fragment ``mlf.cmake`` and of the models' trees."""
    models: tuple[CompileJob, ...]
    others: tuple[CompileJob, ...] = ()
    """Models of the target that this build leaves alone; their trees stay in the fragment where they are there."""
    systems: tuple[str, ...] = ()
    """Build systems, by the names of ``firmware.ADAPTERS``, of which the folder is a package, too."""
    placed: tuple[PlacedSection, ...] = ()
    """Sections of its models that lie in memory regions of the firmware's linker script."""
    providers: tuple[Provider, ...] = ()
    """Where the project has external dependencies from: all that it names, needed or not."""

    @property
    def toolchain_files(self) -> tuple[Path, ...]:
        """The toolchain file and those that mlfbuild's own toolchain files share."""
        return () if self.toolchain is None else (self.toolchain, *shared_toolchain_files())

    @property
    def dependencies_folder(self) -> Path:
        """Where what its models need beside their archives lies; there where they need anything."""
        return self.tree / DEPENDENCIES_FOLDER

    @property
    def placement_script(self) -> Path:
        """The linker script that puts ``placed`` into their regions; there where any are."""
        return self.tree / PLACEMENT_FOLDER / LINKER_SCRIPT

    @property
    def placement_fragment(self) -> Path:
        """The fragment of CMake that defines ``mlf::placement``; there where any are ``placed``."""
        return self.tree / PLACEMENT_FOLDER / "placement.cmake"

    def in_fragment(self) -> list[str]:
        """Return the names of the models that the aggregate fragment has, in the project file's order of each kind."""
        kept = [job.model for job in self.others if (job.tree / "mlf.cmake").is_file()]
        return [job.model for job in self.models] + kept

    def settings(self) -> str:
        """Return all that decides the aggregate fragment and the board's files as canonical JSON."""
        board = self.board.name if self.board else None
        placed = [asdict(section) for section in self.placed]
        return json.dumps({"models": self.in_fragment(), "cpu": self.cpu.name, "board": board, "placed": placed})


@dataclass(frozen=True)
class ProfileJob:
    """One run of each module of a model on its target's board, to count instructions."""

    target: TargetJob
    model: CompileJob
    vectors: Mapping[str, Path]
    """Files by module, under the empty name that of the only one: the first case is run, or zeros without a file."""
    folder: Path
    """Where test firmware is built and counts are kept."""


def image_title(firmware: str, target: str) -> str:
    """Return what the image of a firmware for a target is called: in reports, and in the file of a baseline."""
    return f"{firmware} for {target}"


@dataclass(frozen=True)
class FirmwareJob:
    """One firmware image of the project file for one target."""

    name: str
    target: TargetJob
    models: tuple[str, ...]
    sources: tuple[Path, ...]
    include_dirs: tuple[Path, ...]
    cmake: Path | None
    """Folder of the user's own ``CMakeLists.txt``; without it one is made from ``sources``."""
    build: Path
    root: Path
    """Folder of the project file: the compiler calls it /src, so that two checkouts give the same image."""
    params_section: str | None = None
    """Section whose constants are also written to a file of their own, ``params_binary``."""
    budget: Budget = field(default_factory=Budget)
    model_budgets: tuple[tuple[str, Budget], ...] = ()
    """Of models that have one, by name."""
    budget_file: BudgetFile | None = None
    """What the image may grow from, and by how much."""
    runs: tuple[ProfileJob, ...] = ()
    """Of its models; none where the target has no board."""

    @property
    def title(self) -> str:
        """What the image is called in reports."""
        return image_title(self.name, self.target.name)

    @property
    def elf(self) -> Path:
        """The linked image."""
        suffix = ".elf" if self.target.toolchain else ""
        return self.build / f"{self.name}{suffix}"

    @property
    def linker_map(self) -> Path:
        """The map that the linker writes with mlfbuild's toolchain files."""
        return self.elf.with_name(f"{self.elf.name}.map")

    @property
    def limits(self) -> Mapping[str, int]:
        """Budgets of instructions: of models by name, of all models of the image by the empty name."""
        budgets = (*self.model_budgets, ("", self.budget))
        return {name: budget.instructions for name, budget in budgets if budget.instructions is not None}

    @property
    def stack_limits(self) -> Mapping[str, int]:
        """Budgets of stack: of models by name, of ``main`` with all that it calls by the empty name."""
        budgets = (*self.model_budgets, ("", self.budget))
        return {name: budget.stack for name, budget in budgets if budget.stack is not None}

    @property
    def budgeted_runs(self) -> tuple[ProfileJob, ...]:
        """Those of ``runs`` whose instructions ``limits`` limit."""
        limits = self.limits
        return tuple(run for run in self.runs if "" in limits or run.model.model in limits)

    def report_settings(self) -> str:
        """Return all that decides a report, but for the image, its map and the baseline, as canonical JSON."""
        budgets = {name: asdict(budget) for name, budget in (*self.model_budgets, ("", self.budget))}
        target = {"name": self.target.name, "cpu": self.target.cpu.name}
        models = [model.model for model in self.target.models]
        return json.dumps({"target": target, "models": models, "budgets": budgets}, sort_keys=True)

    @property
    def params_binary(self) -> Path:
        """The bytes of ``params_section`` alone."""
        return self.build / f"{self.name}_params.bin"
