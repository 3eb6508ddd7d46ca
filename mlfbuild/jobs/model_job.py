"""Jobs: descriptions of results to build, with their paths and everything that they depend on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlfbuild.archive import EPOCH
from mlfbuild.cache import CacheSettings
from mlfbuild.core import read_bytes, sha256
from mlfbuild.jobs.budgets import TargetBudgets
from mlfbuild.jobs.devices import TargetDevices
from mlfbuild.jobs.progress import Task
from mlfbuild.jobs.quantize_step import QuantizeStep
from mlfbuild.jobs.tree.library_folders import DEPENDENCIES_FOLDER
from mlfbuild.jobs.tree.placement import LINKER_SCRIPT, PLACEMENT_FOLDER, PlacedSection
from mlfbuild.library import CompileRequest
from mlfbuild.library.keys import Npu
from mlfbuild.project import DEFAULT_LEVEL, Budget, BudgetFile, JobsKeys, Provider, TargetMemory, run_budgets
from mlfbuild.targets import Board, Cpu, Mcu, described_in, emulated_board, shared_toolchain_files

if TYPE_CHECKING:
    from mlfbuild.project import RunnerKeys


_APART = ("name", "reserved")
"""Of a memory: ``weights`` has the second one."""


@dataclass(frozen=True)
class CompileJob:
    """One model for one target: compiled into ``archive``, unpacked into ``tree``."""

    target: str
    compiler: str
    request: CompileRequest
    archive: Path
    tree: Path
    ram_limit: int | None = None
    """Bytes of RAM on the target's board, or the model's share of a memory; a larger arena is an error."""
    ram_name: str = ""
    """The memory of the target that ``ram_limit`` is a share of; empty for the board."""
    verified_on: str | None = None
    """Board, or ``host``, for which the tree also has the sources of test firmware; ``None`` for none."""
    bundles: tuple[Provider, ...] = ()
    """Libraries that are copied into the archive if its code requires them."""
    optimize: str = DEFAULT_LEVEL
    """Optimisation level of the model's code in builds: one of ``LEVELS``."""
    devices: TargetDevices | None = None
    """The target's other devices; ``None`` leaves the compilers of their code to the build."""
    locked: str | None = None
    """SHA-256 that the archive must have in a frozen build; no other archive is unpacked."""
    jobs: JobsKeys = field(default_factory=JobsKeys)
    """The machines that compile it. It decides no byte, and neither does the next one."""
    cache: CacheSettings | None = None
    """The cache of its archive; ``None`` for an archive of a single command."""
    quantize: QuantizeStep | None = None
    """The step that makes the request's source; ``None`` for a source that the user has."""

    @property
    def model(self) -> str:
        """The model's name."""
        return self.request.name

    @property
    def made_first(self) -> bool:
        """Whether a build must make its archive before it can be configured, because its compiler is a program.

        Vela is one, which compiles for an NPU. The archive's files, and the libraries that they require, are not known
        before.
        """
        return self.request.program is not None or self.request.npu is not None

    @property
    def may_require(self) -> bool:
        """Whether its archive may require a library: the native compiler's code for a core alone never does."""
        return self.compiler != "native" or self.request.npu is not None

    @property
    def title(self) -> str:
        """The name of this job in messages."""
        return f"{self.model} for {self.target}"

    def task(self, verb: str) -> Task:
        """Return the work ``verb`` on this job, as it is shown: ``compile``, ``unpack`` or ``profile``."""
        return Task(verb, self.title, self.target, model=self.model)

    def module_title(self, module: str, modules: Sequence[str]) -> str:
        """Return the name in messages of ``module``, one of the ``modules`` in the job's archive."""
        return self.model if list(modules) == [self.model] else f"{self.model} (module {module})"

    def settings(self) -> str:
        """Return ``named_settings`` as canonical JSON."""
        return json.dumps(self.named_settings(), sort_keys=True)

    def all_settings(self) -> str:
        """Return ``settings``, with those of the step that makes the source, and whether the source must be signed."""
        more: dict[str, object] = {} if self.quantize is None else {"quantize": self.quantize.settings()}
        # A commit that requires a signature affects the model, although it changes no byte.
        more |= {} if self.request.trust is None else {"trust": True}
        return json.dumps({**self.named_settings(), **more}, sort_keys=True)

    def named_settings(self) -> dict[str, Any]:
        """Return everything that determines the archive except the content of the model file and the generator.

        It contains no paths, so that it is equal in every checkout, and no target, so that targets with the same CPU
        share archives.
        """
        request = self.request
        # Only the name of the source counts, because its content is hashed separately and its path differs between
        # checkouts.
        settings: dict[str, Any] = {
            "model": request.name,
            "source": request.source.name,
            "compiler": self.compiler,
            "cpu": request.cpu.name,
            "executor": request.executor,
            "options": dict(request.options),
            "placement": asdict(request.placement),
        }
        # Keys that are not used are left out, so that a new kind of setting does not make the archives of all projects
        # out of date.
        if request.interface.given():
            settings["interface"] = request.interface.given()
        if request.memories:
            # The order is that of arguments in C.
            settings["memories"] = {
                each.name: {"order": at, **{key: value for key, value in vars(each).items() if key not in _APART}}
                for at, each in enumerate(request.memories)
            }
        if request.weights is not None:
            settings["weights"] = vars(request.weights)
        if request.extensions:
            settings["extensions"] = dict(sorted(request.extensions.items()))
        if request.npu is not None:
            settings["npu"] = npu_settings(request.npu)
        if request.program is not None:  # its path has no effect on the archive
            settings["command"] = request.program.command
        if os.environ.get(EPOCH):  # the date of the archive's files
            settings[EPOCH] = os.environ[EPOCH]
        return settings

    def tree_settings(self) -> str:
        """Return everything except the archive's content that determines how it is unpacked, as canonical JSON."""
        # The RAM does not change the tree, but it decides whether the tree may be made at all.
        own = {"archive": self.all_settings(), "ram": self.ram_limit, "optimize": self.optimize}
        return json.dumps({**own, **self._devices(), **self._frozen()})

    def unpack_settings(self) -> str:
        """Return everything except the archive's content and the model's name that determines how it is unpacked.

        The canonical JSON is equal for most models of a target.
        """
        own = {"ram": self.ram_limit, "verify": self.verified_on, "optimize": self.optimize}
        return json.dumps({"placement": asdict(self.request.placement), **own, **self._devices(), **self._frozen()})

    def _devices(self) -> dict[str, object]:
        return {"devices": self.devices.settings()} if self.devices is not None and self.devices.declared else {}

    def _frozen(self) -> dict[str, str]:
        return {} if self.locked is None else {"locked": self.locked}

    def sharing_key(self) -> tuple[str, str]:
        """Return a key that is equal for jobs with equal archives: settings and path of the model file.

        Jobs of two projects that trust other people are not equal: one may refuse what the other one builds.
        """
        source, trust = self.request.source.absolute(), self.request.trust
        return self.settings(), str(source) if trust is None else f"{source}\0{trust.signers.absolute()}"


def npu_settings(npu: Npu) -> dict[str, Any]:
    """Return what determines how a model is compiled for ``npu``, except the version of Vela, without paths."""
    config = None if npu.config is None else sha256(read_bytes(npu.config, "configuration of Vela"))
    kept = {key: value for key, value in asdict(npu).items() if key not in {"config", "python"} and value}
    return {**kept, **({} if config is None else {"config": config})}


@dataclass(frozen=True)
class TargetJob:
    """One target of a project: its models' trees and the fragment that includes all of them."""

    name: str
    cpu: Cpu
    board: Board | None
    toolchain: Path | None
    """CMake toolchain file; ``None`` for this machine's own compiler."""
    tree: Path
    """Folder of the aggregate fragment ``mlf.cmake`` and of the models' trees."""
    models: tuple[CompileJob, ...]
    others: tuple[CompileJob, ...] = ()
    """Models of the target that this build does not make; if their trees exist, they stay in the fragment."""
    systems: tuple[str, ...] = ()
    """Build systems of which the folder is a package, by the names in ``ADAPTERS``."""
    version: str = ""
    """Version of these packages; empty if the project file has none."""
    placed: tuple[PlacedSection, ...] = ()
    """Sections of its models that are in memory regions of the firmware's linker script."""
    providers: tuple[Provider, ...] = ()
    """All providers of external libraries in the project file, whether required or not."""
    budgets: TargetBudgets | None = None
    """The budgets of its images; ``None`` if they are for this machine, to which no budgets apply."""
    mcu: Mcu | None = None
    """The microcontroller, at the target's clock, whose cycles are modelled. It decides no byte that is built."""
    runner: RunnerKeys | None = None
    """The device that firmware runs on instead of the board. It decides no byte that is built for firmware."""
    npu: Npu | None = None
    """The NPU beside its core, which QEMU does not emulate."""
    part: str | None = None
    """The name of its microcontroller, whether its cycles are modelled or not."""
    memories: tuple[TargetMemory, ...] = ()
    """The memories that the target, its models or a budget name."""
    memory_script: Path | None = None
    """The linker script that ``memories`` of the target names."""

    @property
    def part_files(self) -> tuple[Path, ...]:
        """The files that describe the target: that of its microcontroller, and the linker script with its memories."""
        return tuple(file for file in (described_in(self.part or ""), self.memory_script) if file is not None)

    @property
    def run_board(self) -> Board | None:
        """The emulated board that counts runs: the target's, or one with the CPU of its microcontroller or device.

        ``None`` if there is no such board, and for a target with an NPU.
        """
        if self.npu is not None:
            return None
        return self.board or (emulated_board(self.cpu) if self.mcu or self.runner or self.part else None)

    @property
    def toolchain_files(self) -> tuple[Path, ...]:
        """The toolchain file and the files that mlfbuild's toolchain files include."""
        return () if self.toolchain is None else (self.toolchain, *shared_toolchain_files())

    @property
    def dependencies_folder(self) -> Path:
        """The folder of the libraries that its models require; it exists if they require any."""
        return self.tree / DEPENDENCIES_FOLDER

    @property
    def placement_script(self) -> Path:
        """The linker script that puts ``placed`` into their regions; it exists if there are any."""
        return self.tree / PLACEMENT_FOLDER / LINKER_SCRIPT

    @property
    def placement_fragment(self) -> Path:
        """The CMake fragment that defines ``mlf::placement``; it exists if any sections are ``placed``."""
        return self.tree / PLACEMENT_FOLDER / "placement.cmake"

    def in_fragment(self) -> list[str]:
        """Return the names of the models in the aggregate fragment: ``models``, then ``others`` that have a tree."""
        kept = [job.model for job in self.others if (job.tree / "mlf.cmake").is_file()]
        return [job.model for job in self.models] + kept

    def settings(self) -> str:
        """Return everything that determines the aggregate fragment and the board's files, as canonical JSON."""
        board = self.board.name if self.board else None
        placed = [asdict(section) for section in self.placed]
        settings = {"models": self.in_fragment(), "cpu": self.cpu.name, "board": board, "placed": placed}
        if self.budgets:
            settings["budgets"] = self.budgets.to_json()
        return json.dumps(settings)


def run_budgets_on(target: TargetJob) -> tuple[str, ...]:
    """Return the keys of the budgets that runs on ``target`` can check."""
    emulated = target.npu is None
    return run_budgets(board=emulated and target.board is not None, mcu=emulated and target.mcu is not None)


def run_limits(budgets: Mapping[str, Budget], target: TargetJob) -> dict[str, dict[str, int]]:
    """Return those of ``budgets`` that runs on ``target`` can check, by name and key."""
    keys = run_budgets_on(target)
    found = {
        name: {key: limit for key, limit in budget.of_runs.items() if key in keys} for name, budget in budgets.items()
    }
    return {name: limits for name, limits in found.items() if limits}


@dataclass(frozen=True)
class ProfileJob:
    """One run of each module of a model on an emulated board, to count instructions and model cycles."""

    target: TargetJob
    model: CompileJob
    vectors: Mapping[str, Path]
    """Module -> vectors file; the only module has an empty name. The first case is run; without a file, zeros are."""
    folder: Path
    """The folder in which test firmware is built and counts are stored."""


def image_title(firmware: str, target: str) -> str:
    """Return the name of the image of a firmware for a target, as in reports and baseline files."""
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
    """Folder of the user's own ``CMakeLists.txt``; if it is ``None``, one is generated from ``sources``."""
    build: Path
    root: Path
    """Folder of the project file; the compiler replaces it by /src, so that all checkouts give the same image."""
    params_section: str | None = None
    """Section whose constants are also written to the file ``params_binary``."""
    budget: Budget = field(default_factory=Budget)
    model_budgets: tuple[tuple[str, Budget], ...] = ()
    """(model, budget) of each model that has a budget."""
    budget_file: BudgetFile | None = None
    """The baseline of the image's size, and how much it may grow."""
    runs: tuple[ProfileJob, ...] = ()
    """The profile runs of its models; none if the target has neither a board nor a microcontroller."""

    @property
    def title(self) -> str:
        """The name of the image in reports."""
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
    def limits(self) -> Mapping[str, Mapping[str, int]]:
        """Model -> its budgets of runs; the empty name has those of all models of the image together."""
        return run_limits({**dict(self.model_budgets), "": self.budget}, self.target)

    @property
    def stack_limits(self) -> Mapping[str, int]:
        """Model -> budget of stack; the empty name has the budget of ``main`` with all functions that it calls."""
        budgets = (*self.model_budgets, ("", self.budget))
        return {name: budget.stack for name, budget in budgets if budget.stack is not None}

    @property
    def budgeted_runs(self) -> tuple[ProfileJob, ...]:
        """The ``runs`` that are needed to check ``limits``."""
        limits = self.limits
        return tuple(run for run in self.runs if "" in limits or run.model.model in limits)

    def report_settings(self) -> str:
        """Return everything that determines a report except image, map and baseline, as canonical JSON."""
        budgets = {name: budget.to_json() for name, budget in (*self.model_budgets, ("", self.budget))}
        target: dict[str, Any] = {"name": self.target.name, "cpu": self.target.cpu.name}
        if self.target.memories:
            target["memories"] = [asdict(memory) for memory in self.target.memories]
        models = [model.model for model in self.target.models]
        return json.dumps({"target": target, "models": models, "budgets": budgets}, sort_keys=True)

    @property
    def params_binary(self) -> Path:
        """The file with the bytes of ``params_section``."""
        return self.build / f"{self.name}_params.bin"
