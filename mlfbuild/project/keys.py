"""The keys of a project file, declared once: pydantic checks with them and the JSON Schema is made of them.

Checks here look at one value. What needs two (a board that does not fit a CPU, a name that leads nowhere) is in
``references``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mlfbuild.project import rules
from mlfbuild.project.program import COMMAND_SCHEMA, check_command, split_command
from mlfbuild.project.provisions import DEPENDENCY_SCHEMA
from mlfbuild.project.units import (
    COUNT_SCHEMA,
    PERCENT_SCHEMA,
    SIZE_SCHEMA,
    count_value,
    percent_value,
    size_value,
)

FORMAT_VERSION = 1

FilePath = Annotated[str, rules.PATH]
Command = Annotated[
    list[Annotated[str, rules.WORD]],
    BeforeValidator(split_command),
    AfterValidator(check_command),
    Field(min_length=1),
    WithJsonSchema(COMMAND_SCHEMA),
]
"""A command line: a list of words, or text that is split into them."""

License = Annotated[str, AfterValidator(rules.canonical_license)]
Size = Annotated[int, BeforeValidator(size_value), WithJsonSchema(SIZE_SCHEMA)]
Count = Annotated[int, BeforeValidator(count_value), WithJsonSchema(COUNT_SCHEMA)]
Percent = Annotated[Decimal, BeforeValidator(percent_value), WithJsonSchema(PERCENT_SCHEMA)]
VectorFiles = dict[Annotated[str, rules.MODULE_NAME], FilePath]

TEXT, MAPPING = "[text]", "[mapping]"
"""Marks in the paths of pydantic's findings about a value that may be either."""

_T = TypeVar("_T")
_M = TypeVar("_M")
TextOr = Annotated[
    Annotated[_T, Tag(TEXT)] | Annotated[_M, Tag(MAPPING)],
    Discriminator(lambda value: MAPPING if isinstance(value, Mapping | BaseModel) else TEXT),
]
"""A text or, where there is more to say, a mapping; what is neither is told to be no text."""


class Keys(BaseModel):
    """A mapping with a fixed set of keys, spelled in kebab case."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: name.replace("_", "-"),
        model_title_generator=lambda model: model.__name__.removesuffix("Keys").lower(),
    )


class TargetKeys(Keys):
    """One device."""

    cpu: Annotated[str, rules.CPU] = Field(description="Processor core that code is compiled for.")
    board: Annotated[str, rules.BOARD] | None = Field(
        None, description="Board that QEMU emulates; brings start-up code and memory map."
    )
    c_compiler: Annotated[str, rules.C_COMPILER] | None = Field(
        None, description="C compiler whose toolchain file for the CPU is used. Default: gcc."
    )
    toolchain: FilePath | None = Field(None, description="CMake toolchain file to use instead of the CPU's own.")
    regions: dict[Annotated[str, rules.SECTION], Annotated[str, rules.REGION]] = Field(
        default_factory=dict, description="Memory region of the linker script for sections that models place data in."
    )


class ParamsKeys(Keys):
    """Linker sections of constants by what they are."""

    weights: Annotated[str, rules.SECTION] | None = Field(None, description="Filters, matrices, constant tensors.")
    biases: Annotated[str, rules.SECTION] | None = Field(None, description="Biases and rescalings.")
    tables: Annotated[str, rules.SECTION] | None = Field(None, description="Lookup tables and what else is constant.")


class PlacementKeys(Keys):
    """Linker sections, so that a linker script can place a model's data."""

    params: TextOr[Annotated[str, rules.SECTION], ParamsKeys] | None = Field(
        None, description="Section of the constants, or one for each class of them: .mlf_params"
    )
    workspace: Annotated[str, rules.SECTION] | None = Field(None, description="Section of the workspace: .bss.dtcm")
    state: Annotated[str, rules.SECTION] | None = Field(
        None, description="Section of what a streaming network keeps between runs: .bss.dtcm"
    )


class BudgetKeys(Keys):
    """What may be taken at most; a build that takes more fails."""

    flash: Size | None = Field(None, description="Bytes of flash: 96 KiB")
    ram: Size | None = Field(None, description="Bytes of RAM that the linker gives: 32 KiB")
    stack: Size | None = Field(
        None, description="Bytes of stack at its deepest: of the model, or of main with all that it calls: 2 KiB"
    )
    instructions: Count | None = Field(None, description="Instructions of one run of each model, on QEMU: 3 M")


class ModelKeys(Keys):
    """One network."""

    model_config = ConfigDict(json_schema_extra={"allOf": list(rules.COMPILER_SCHEMAS)})

    source: FilePath = Field(
        description="Model file (.tflite, .onnx) or Model Library Format archive (.tar); any file for other compilers."
    )
    compiler: Annotated[str, rules.COMPILER] | None = Field(
        None,
        description="What makes C of it; command and tvm run programs. Default: native, archive for an archive.",
    )
    command: Command | None = Field(
        None, description="With compiler command: what writes the archive {output} of {source} for {cpu}."
    )
    python: FilePath | None = Field(None, description="With compiler tvm: the Python that has TVM. Default: python3.")
    inputs: list[FilePath] | None = Field(
        None,
        min_length=1,
        description="With compiler command or tvm: files, folders and patterns that decide the result beside `source`.",
    )
    executor: Annotated[str, rules.EXECUTOR] | None = Field(
        None, description="aot calls operators directly, graph interprets a graph. Default: aot; what an archive has."
    )
    options: dict[Annotated[str, rules.OPTION_NAME], str | int | float | bool] = Field(
        default_factory=dict, description="The compiler's own options."
    )
    targets: list[str] | None = Field(None, min_length=1, description="Targets it is built for. Default: all.")
    vectors: TextOr[FilePath, Annotated[VectorFiles, Field(min_length=1)]] | None = Field(
        None, description="Inputs and expected outputs (.npz) for `mlfbuild verify`; of several modules, one file each."
    )
    placement: PlacementKeys | None = Field(None, description="Linker sections of the model's data.")
    budget: BudgetKeys | None = Field(None, description="What it may take of an image at most.")
    license: License | None = Field(
        None, description="Licence of the model as an SPDX expression, for `mlfbuild sbom`: Apache-2.0"
    )


class FirmwareKeys(Keys):
    """One firmware image: `sources`, or `cmake` for a CMake project of its own."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["sources"]}, {"required": ["cmake"]}]})

    sources: list[FilePath] | None = Field(None, min_length=1, description="C, C++ and assembler files of a program.")
    include_dirs: list[FilePath] = Field(default_factory=list, description="Folders of headers for `sources`.")
    cmake: FilePath | None = Field(None, description="Folder with a CMakeLists.txt to build instead of `sources`.")
    params_binary: Annotated[str, rules.SECTION] | None = Field(
        None, description="Section of constants that is also written to <name>_params.bin: .mlf_params"
    )
    budget: BudgetKeys | None = Field(None, description="What the whole image may take at most.")
    models: list[str] | None = Field(None, description="Models it links. Default: all of its targets.")
    targets: list[str] | None = Field(None, min_length=1, description="Targets it is built for. Default: all.")


class DependencyKeys(Keys):
    """A library that code of models needs: `git`, `path`, `url` or `package`."""

    model_config = ConfigDict(json_schema_extra=dict(DEPENDENCY_SCHEMA))

    git: Annotated[str, rules.GIT_ADDRESS] | None = Field(
        None, description="Repository it is fetched from: https://, ssh://, git@host:path, file:// or a folder."
    )
    path: FilePath | None = Field(None, description="Folder with its sources.")
    url: Annotated[str, rules.ARCHIVE_ADDRESS] | None = Field(
        None, description="Archive it is fetched from: https://, http:// or file://."
    )
    package: Annotated[str, rules.PACKAGE] | None = Field(
        None, description="CMake package that the firmware has already; nothing of it is built."
    )
    version: Annotated[str, rules.VERSION] | None = Field(
        None, description="With `git`, where it is required: a tag, a branch or a commit. Else the version it is."
    )
    sha256: Annotated[str, rules.SHA256] | None = Field(
        None, description="With `url`, where it is required: hash of the archive, 64 hexadecimal digits."
    )
    target: Annotated[str, rules.CMAKE_TARGET] | None = Field(
        None, description="With `package`: the library to link, as CMSISNN::nn. Default: the package's name."
    )
    sources: list[Annotated[str, rules.PATTERN]] | None = Field(
        None, min_length=1, description="Patterns of the files that are compiled. Default: known, or found."
    )
    include_dirs: list[Annotated[str, rules.SUBFOLDER]] | None = Field(
        None, min_length=1, description="Folders of its headers. Default: known, or found."
    )
    license: License | None = Field(
        None, description="Licence as an SPDX expression: Apache-2.0. Default: known, or none."
    )
    compile_options: list[Annotated[str, rules.COMPILE_OPTION]] | None = Field(
        None, min_length=1, description="Options of the compiler for its sources alone: -O3"
    )
    public_headers: bool = Field(False, description="Whether the application sees its headers, too.")
    bundle: bool = Field(False, description="Whether archives that need it take its needed sources along.")


class ProjectKeys(Keys):
    """Targets, models and firmware of one project."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"budget-growth": ["budget-file"]}})

    mlfbuild: Annotated[int, WithJsonSchema({"const": FORMAT_VERSION})] = Field(description="Version of this format.")
    targets: dict[Annotated[str, rules.TARGET_NAME], TargetKeys] = Field(min_length=1, description="Devices, by name.")
    models: dict[Annotated[str, rules.MODEL_NAME], ModelKeys] = Field(
        min_length=1, description="Networks, by name; the name becomes part of C symbols."
    )
    firmware: dict[Annotated[str, rules.FIRMWARE_NAME], FirmwareKeys] = Field(
        default_factory=dict, description="Firmware images, by name."
    )
    dependencies: dict[Annotated[str, rules.DEPENDENCY_NAME], DependencyKeys] = Field(
        default_factory=dict, description="Libraries that the code of models needs, by the name that archives have."
    )
    share_workspace: list[str] = Field(
        default_factory=list,
        description="Models that never run at the same time: an image has one workspace for them.",
        json_schema_extra={"minItems": 2},
    )
    budget_file: FilePath | None = Field(
        None, description="Sizes of the images, committed to git, that `mlfbuild report --update-baseline` writes."
    )
    budget_growth: Percent | None = Field(
        None, description="What a model or an image may take more than in `budget-file`. Default: 1 %."
    )


class _SchemaGenerator(GenerateJsonSchema):
    """Leaves out null, which a project file never holds, and titles, which would only repeat the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's signature
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        return {**super().dict_schema(schema), "additionalProperties": False}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the project file, for editors and other tools."""
    schema = ProjectKeys.model_json_schema(by_alias=True, schema_generator=_SchemaGenerator)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "mlfbuild.yml"}
