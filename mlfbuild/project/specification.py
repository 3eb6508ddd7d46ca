"""The keys of a project file: targets, models, firmware and the project, declared once (see ``keys``).

The text below each field is the key's description in the JSON Schema and on the reference page. Checks here look at
one value; ``references`` checks what needs two, such as a board that does not fit a CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar

from mlfbuild.core import Diagnostic, Mistake, Trust, in_quotes
from mlfbuild.core.keys import (
    DERIVED,
    EXACT,
    NOT_EMPTY,
    Convert,
    Frequency,
    Keys,
    PathText,
    Percent,
    ProjectPath,
    Rule,
    TextOr,
    one_of,
)
from mlfbuild.evaluation import EvaluateKeys
from mlfbuild.exploration import AXIS, GOALS, Setting
from mlfbuild.library import PARAMETERS, CompilerProgram, OptionValue
from mlfbuild.library.keys import (
    SECTION,
    ConstantInput,
    Dimension,
    InterfaceNames,
    Npu,
    Placement,
    PlacementKeys,
    SignatureName,
    TensorName,
)
from mlfbuild.project import rules
from mlfbuild.project.budget import Budget, BudgetFile
from mlfbuild.project.device import DeviceKeys
from mlfbuild.project.levels import DEFAULT_LEVEL
from mlfbuild.project.memory_keys import ModelMemories, TargetMemories, WeightKeys
from mlfbuild.project.memory_script import MemoryScript
from mlfbuild.project.problems import KeyPath, Position, Problem, in_file_order
from mlfbuild.project.program import EXTERNAL_COMPILERS, Command
from mlfbuild.project.provider import Provider
from mlfbuild.project.runner import RunnerKeys
from mlfbuild.project.services import ARCHIVES, BLOBS, JobsKeys, ResultCacheKeys, TrustKeys
from mlfbuild.quantization import QuantizeKeys
from mlfbuild.targets import TimingKeys

FORMAT_VERSION = 1
VECTORS_FOLDER = "tests"
"""Folder of ``<model>.npz``, the vectors of a model that names none."""
# The reader compares by identity, so a list in the file never means all.
ALL = ("*",)
"""The default of a list of targets or models: all of them. The reader replaces it with their names."""


def _of_groups(value: object) -> object:
    """Refuse names that are in no group: the check of types would advise to put brackets around each."""
    groups = value if isinstance(value, list) else [value]
    alone = [*dict.fromkeys(group for group in groups if isinstance(group, str))]
    if alone:
        example = ", ".join(alone if len(alone) > 1 else [*alone, "MODEL"])
        reason = f"expected a list of lists, got text {in_quotes(alone[0])}"
        raise Mistake("wrong-type", reason=reason, hint=f"write [[{example}]]")
    return value


_Together = Annotated[tuple[str, ...], Rule(lambda _: None, {"minItems": 2})]
_Groups = Annotated[tuple[_Together, ...], NOT_EMPTY, Convert(_of_groups, before=True)]
_Vectors = Annotated[Mapping[Annotated[str, rules.MODULE_NAME], ProjectPath], NOT_EMPTY]


def _only_version(value: int) -> Mistake | None:
    if value == FORMAT_VERSION:
        return None
    return Mistake(
        "unknown-format-version", reason=f"there is no format version {value}", hint=f"write {FORMAT_VERSION}"
    )


@dataclass(frozen=True)
class TargetSpec(Keys):
    """One device."""

    TITLE = "target"
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        "anyOf": [{"required": ["cpu"]}, {"required": ["mcu"]}, {"required": ["board"]}],
        "dependentSchemas": {"clock": {"anyOf": [{"required": [key]} for key in ("mcu", "timing", "board")]}},
    }

    name: str = field(metadata=DERIVED)
    cpu: Annotated[str, rules.CPU] = ""
    """Processor core to compile for. Default: the core of `mcu`."""
    board: Annotated[str, rules.TARGET_BOARD] | None = None
    """Board that QEMU emulates, which adds start-up code and a memory map, or qemu for the one that fits the CPU; or a
    board that you own, such as nucleo-f446re, which gives `mcu` and `runner`."""
    c_compiler: Annotated[str, rules.C_COMPILER] | None = None
    """C compiler whose toolchain file for the CPU is used. Default: gcc."""
    toolchain: ProjectPath | None = None
    """CMake toolchain file to use instead of the CPU's own."""
    regions: Mapping[Annotated[str, SECTION], Annotated[str, rules.REGION]] = field(default_factory=dict)
    """Memory region of the linker script for each section that models place data in."""
    mcu: Annotated[str, rules.MCU] | None = None
    """Microcontroller: its core, memories and cycle model as far as known; or a file that describes it, mychip.toml;
    or the device of a CMSIS-Pack, {pack: vendor.pack, device: STM32F407VGT6}.
    Default: that of a `board` you own."""
    clock: Frequency | None = None
    """Clock of its core: 120 MHz. Default: the highest of the microcontroller."""
    timing: TimingKeys | None = None
    """Memories and caches of a microcontroller of your own, or values that differ from those of `mcu`."""
    memories: TargetMemories = field(default_factory=dict)
    """Memories for tensors, the fastest first: {dtcm: {size: 128 KiB}, sram: {}}; or a linker script: firmware.ld"""
    runner: RunnerKeys | None = None
    """Device that `verify`, `profile`, `flash` and `run-firmware` use. Default: the debugger on a `board` you own."""
    devices: Mapping[Annotated[str, rules.DEVICE_NAME], DeviceKeys] = field(default_factory=dict)
    """Other devices whose code archives contain, by the name of the folder in codegen/."""
    memory_script: MemoryScript | None = field(default=None, metadata=DERIVED)
    """The linker script that ``memories`` were read from."""
    npu: Npu | None = None
    """The Arm Ethos-U beside the core, for which `.tflite` models are compiled with Arm's Vela."""


@dataclass(frozen=True)
class ModelSpec(Keys):
    """One network."""

    TITLE = "model"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"allOf": list(rules.COMPILER_SCHEMAS)}

    name: str = field(metadata=DERIVED)
    source: ProjectPath
    """Model file (.tflite, .onnx) or Model Library Format archive (.tar); any file for other compilers."""
    interface: InterfaceNames = field(default_factory=InterfaceNames)
    """Names of inputs and outputs in C and reports, which stay the same when the model is trained again."""
    compiler: Annotated[str, rules.COMPILER] = ""
    """Compiler that translates it to C; command and tvm run programs. Default: native, archive for an archive."""
    command: Command = ()
    """With compiler command: the command that writes the archive {output} of {source} for {cpu}."""
    python: PathText | None = None
    """With compiler tvm: the Python that has TVM. Default: python3."""
    inputs: Annotated[tuple[PathText, ...], NOT_EMPTY] = ()
    """With compiler command or tvm: files, folders and patterns that decide the result in addition to `source`."""
    parameters: Annotated[str, one_of("parameters", PARAMETERS)] | None = None
    """linked, or replaceable: trained values are in a blob that firmware can replace in the field. Default: linked."""
    executor: Annotated[str, rules.EXECUTOR] | None = None
    """aot calls operators directly, graph interprets a graph. Default: aot, or that of the archive."""
    optimize: Annotated[str, rules.LEVEL] = DEFAULT_LEVEL
    """Optimisation level of its C code: O2 also in debug builds, Os, O3, or inherit for that of the build."""
    options: Mapping[Annotated[str, rules.OPTION_NAME], OptionValue] = field(default_factory=dict)
    """Options of the compiler."""
    extensions: Mapping[Annotated[str, rules.EXTENSION_NAME], Annotated[OptionValue, rules.FACT]] = field(
        default_factory=dict
    )
    """Facts for later stages that the archive records, by name: {board: nucleo_l4r5zi}"""
    dims: Mapping[TensorName, Dimension] = field(default_factory=dict)
    """Sizes of free dimensions of an ONNX model by name, or by input and index: {batch: 1, x.1: 16}"""
    constants: Mapping[TensorName, ConstantInput] = field(default_factory=dict)
    """Inputs of an ONNX model that have the same value in every run, each with the number: {sr: 16000}"""
    state: Mapping[TensorName, TensorName] = field(default_factory=dict)
    """Inputs that become the network's own state, each with the output that it gets after a run: {h_in: h_out}"""
    signature: SignatureName | None = None
    """Signature of a .tflite file that is compiled, if it has several. Default: the first subgraph."""
    quantize: QuantizeKeys | None = None
    """Quantisation of a float network in the build, before it is compiled."""
    targets: Annotated[tuple[str, ...], NOT_EMPTY] = ALL
    """Targets that it is built for. Default: all."""
    vectors: Annotated[Mapping[str, Path], TextOr(ProjectPath, _Vectors, wrap=lambda path: {"": path})] = field(
        default_factory=dict
    )
    """Inputs and expected outputs (.npz) for `mlfbuild verify`; one file for each module if there are several.
    Default: the file in tests/ with the name of the model, if it exists."""
    evaluate: EvaluateKeys | None = None
    """The required quality on a test set, for `mlfbuild evaluate` and `mlfbuild verify`."""
    explore: Annotated[Mapping[Annotated[str, AXIS], Annotated[tuple[Setting, ...], NOT_EMPTY]], NOT_EMPTY] = field(
        default_factory=dict
    )
    """The trials of `mlfbuild explore`: keys of the model, each with its values: {options.memory: [smallest, fastest]}
    Default: what usually matters, at most 24 points."""
    goal: Annotated[str, one_of("goal", GOALS)] | None = None
    """Takes the settings that `mlfbuild explore` found best: latency, size or accuracy."""
    placement: PlacementKeys = field(default_factory=Placement)
    """Linker sections for the model's data."""
    memories: ModelMemories = field(default_factory=dict)
    """Memories that it may use, or its share of each: [dtcm, sram] or {dtcm: 64 KiB}. Default: those of the target."""
    weights: WeightKeys | None = None
    """Memory to which the code copies weights that are read often: {memory: dtcm, copy: 24 KiB, stream: 8 KiB}"""
    budget: Budget = field(default_factory=Budget)
    """Upper limits for the model's share of an image."""
    license: Annotated[str, Convert(rules.canonical_license)] = ""
    """Licence of the model as an SPDX expression, for `mlfbuild sbom`: Apache-2.0"""
    folder: Path = field(default=Path(), metadata=DERIVED)
    """Folder of the project file, in which ``program`` runs."""
    trust: Trust | None = field(default=None, metadata=DERIVED)
    """Accepted signers of ``source``: ``trust`` of the project for an archive, ``None`` if it needs no signature."""

    @property
    def parameter_options(self) -> Mapping[str, OptionValue]:
        """The compile option of the key ``parameters``, if it is set."""
        return {} if self.parameters is None else {"parameters": self.parameters}

    @property
    def program(self) -> CompilerProgram | None:
        """The program that compiles it, ``None`` for a compiler of mlfbuild.

        Its folder is that of the project file. It has the command line or the Python interpreter, and the further
        inputs that decide the result.
        """
        if self.compiler not in EXTERNAL_COMPILERS:
            return None
        return CompilerProgram(self.folder, self.command, self.python, self.inputs)


@dataclass(frozen=True)
class FirmwareSpec(Keys):
    """One firmware image, built from `sources` or by the CMake project in `cmake`."""

    TITLE = "firmware"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"oneOf": [{"required": ["sources"]}, {"required": ["cmake"]}]}

    name: str = field(metadata=DERIVED)
    sources: Annotated[tuple[ProjectPath, ...], NOT_EMPTY] = ()
    """C, C++ and assembler files of a program."""
    include_dirs: tuple[ProjectPath, ...] = ()
    """Folders of headers for `sources`."""
    cmake: ProjectPath | None = None
    """Folder with a CMakeLists.txt to build instead of `sources`."""
    params_binary: Annotated[str, SECTION] | None = None
    """Section of constants that is also written to <name>_params.bin: .mlf_params"""
    budget: Budget = field(default_factory=Budget)
    """Upper limits for the whole image."""
    models: tuple[str, ...] = ALL
    """Models that it links. Default: all models of its targets."""
    targets: Annotated[tuple[str, ...], NOT_EMPTY] = ALL
    """Targets that it is built for. Default: all."""


# Short forms, which ``short_forms`` writes in full before values are checked.
_Devices = Annotated[tuple[Annotated[str, rules.DEVICE], ...], NOT_EMPTY]
_Targets = Annotated[Mapping[Annotated[str, rules.TARGET_NAME], TargetSpec], NOT_EMPTY]
_Sources = Annotated[tuple[PathText, ...], NOT_EMPTY]
_Model = Annotated[ModelSpec, TextOr(ProjectPath, ModelSpec)]
_Models = Annotated[Mapping[Annotated[str, rules.MODEL_NAME], _Model], NOT_EMPTY]


@dataclass(frozen=True)
class Project(Keys):
    """Targets, models and firmware of one project.

    A project that ``load_project`` returned has no mistakes: every name in it exists.
    """

    TITLE = "mlfbuild.yml"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"dependentRequired": {"budget-growth": ["budget-file"]}}

    path: Path = field(metadata=DERIVED)
    mlfbuild: Annotated[int, EXACT, Rule(_only_version, {"const": FORMAT_VERSION})]
    """Version of this format."""
    targets: Annotated[Mapping[str, TargetSpec], TextOr(_Devices, _Targets)]
    """Devices, by name, or a list of cores, boards and microcontrollers: [cortex-m4]"""
    models: Annotated[Mapping[str, ModelSpec], TextOr(_Sources, _Models)]
    """Networks or their files, by name, or a list of files and patterns; the name becomes part of C symbols."""
    version: Annotated[str, rules.PROJECT_VERSION] = ""
    """Version of the product, which packages and bills of materials get: 1.4.0"""
    firmware: Mapping[Annotated[str, rules.FIRMWARE_NAME], FirmwareSpec] = field(default_factory=dict)
    """Firmware images, by name."""
    dependencies: Mapping[Annotated[str, rules.DEPENDENCY_NAME], Provider] = field(default_factory=dict)
    """Libraries that the code of models requires, by the name that archives use."""
    share_workspace: Annotated[tuple[str, ...], Rule(lambda _: None, {"minItems": 1})] = ()
    """Models that never run at the same time: an image has one workspace for all of them."""
    concurrent: _Groups = ()
    """Groups of models in `share-workspace` that may run at the same time, and need several workspaces: [[kws, vad]]"""
    budget_file: ProjectPath | None = None
    """Sizes of the images, committed to git, that `mlfbuild report --update-baseline` writes."""
    budget_growth: Percent = Decimal(1)
    """Accepted growth of a model or an image since `budget-file`. Default: 1 %."""
    jobs: JobsKeys = field(default_factory=JobsKeys)
    """Machines that compile models and run checks. Default: this machine."""
    cache: ResultCacheKeys = field(default_factory=ResultCacheKeys)
    """Caches of compiled archives. Default: 2 GiB in your cache folder."""
    trust: TrustKeys | None = None
    """Accepted signers of files from others. Default: signatures are not checked."""
    positions: Mapping[KeyPath, Position] = field(default_factory=dict, compare=False, repr=False, metadata=DERIVED)
    watched: tuple[Path, ...] = field(default=(), metadata=DERIVED)
    """Folders in which a new file can be another model, because a pattern of ``models`` matches it; and the record of
    explorations, if a model has a goal."""

    @property
    def root(self) -> Path:
        """Folder of the project file; relative paths in the file start here and are already joined to it."""
        return self.path.parent

    @property
    def blob_trust(self) -> Trust | None:
        """The accepted signers of blobs of parameters; ``None`` if they need no signature."""
        return None if self.trust is None else self.trust.of(BLOBS)

    def trust_in(self, compiler: str) -> Trust | None:
        """Return who must have signed the sources of models with this ``compiler``; ``None`` if anyone may have."""
        return None if self.trust is None or compiler != "archive" else self.trust.of(ARCHIVES)

    @property
    def baseline(self) -> BudgetFile | None:
        """``budget-file`` and ``budget-growth``."""
        return None if self.budget_file is None else BudgetFile(self.budget_file, self.budget_growth)

    @property
    def found_vectors(self) -> dict[str, Path]:
        """The vectors of models without this key, by model: those that were found by their name.

        A model without the key ``vectors`` has the file ``tests/<model>.npz`` if it exists; commands mention that they
        use it, because the project file does not.
        """
        return {
            name: model.vectors[""]
            for name, model in self.models.items()
            if model.vectors and ("models", name, "vectors") not in self.positions
        }

    def models_on(self, target: str, firmware: str | None = None) -> tuple[ModelSpec, ...]:
        """Return the models built for ``target``, all or those of one firmware, in file order.

        ``target`` and ``firmware`` are names in the project file. A firmware may name models that are not built for
        each of its targets; those are left out.
        """
        wanted = self.models if firmware is None else self.firmware[firmware].models
        return tuple(model for name, model in self.models.items() if name in wanted and target in model.targets)

    def problems(self, found: Iterable[tuple[KeyPath, Mistake]]) -> list[Diagnostic]:
        """Return the findings for mistakes found after reading, each with the way to the value, in file order.

        The place of each is ``mlfbuild.yml:9:14: models.kws.source``.
        """
        return in_file_order(self.path, (Problem(self._position(path), path, mistake) for path, mistake in found))

    def _position(self, path: KeyPath) -> Position:
        found = (self.positions.get(path[:end]) for end in range(len(path), -1, -1))
        return next((position for position in found if position), Position(1, 1))


INCLUDE = "include"
"""The key that makes a project file a workspace."""


@dataclass(frozen=True)
class Workspace(Keys):
    """A file that lists project files."""

    TITLE = "mlfbuild.yml of a workspace"

    path: Path = field(metadata=DERIVED)
    mlfbuild: Annotated[int, EXACT]
    """Version of this format."""
    include: Annotated[Mapping[Annotated[str, rules.TARGET_NAME], ProjectPath], NOT_EMPTY]
    """Project files, by the prefix that names them on the command line."""
