"""Requirements of a module's code: stated in the metadata, or recognised by included headers."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.library import CodegenFile, ExternalDependency, LazyBytes, Module
from mlfbuild.library.requirement import Requirement, exporter_version, requirements_of, with_requirements
from support.libraries import native_module
from support.tvm_archives import TVM_ARCHIVES

REPOSITORY = "https://github.com/ARM-software/CMSIS-NN"
NAMED = ExternalDependency("CMSIS_NN", "https://example.org/nn.git", "git", "v6.0.0")


def crt(version: str) -> ExternalDependency:
    return ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", version)


def module(text: str, *dependencies: ExternalDependency, path: str = "host/src/kws_lib2.c") -> Module:
    """Return a module from TVM whose only source is ``text``."""
    code = CodegenFile(PurePosixPath(path), text.encode())
    return replace(native_module("kws"), model_id="", codegen=(code,), external_dependencies=dependencies)


NEEDS_NN = '#include <math.h>\n#include <arm_nnfunctions.h>\n# include "arm_nn_types.h"\n#include <arm_nnfunctions.h>\n'


def test_requirement_of_cmsis_nn_is_recognised(shared: Path) -> None:
    (kws,) = open_archive(shared / "archives/kws_int8-cmsisnn_m4.tar").modules
    headers = ("arm_nnfunctions.h", "arm_nn_types.h", "arm_nn_math_types.h")
    assert requirements_of(kws) == (
        Requirement("cmsis-nn", "v4.1.0", REPOSITORY, "git", "kws_int8", headers, "TVM 0.14.0"),
    )
    assert not requirements_of(kws)[0].declared


@pytest.mark.parametrize("name", [name for name in TVM_ARCHIVES if name != "kws_int8-cmsisnn_m4"])
def test_other_tvm_archives_have_no_requirements(shared: Path, name: str) -> None:
    for each in open_archive(shared / f"archives/{name}.tar").modules:
        assert requirements_of(each) == ()
        assert with_requirements(each) is each


@pytest.mark.parametrize(
    ("dependencies", "tvm", "version", "exporter"),
    [
        ([crt("0.13.0")], "", "v4.1.0", "TVM 0.13.0"),
        ([crt("0.12.0")], "", "v4.0.0", "TVM 0.12.0"),
        ([crt("0.12.0")], "0.14.0", "v4.0.0", "TVM 0.12.0"),
        ([crt("0.11.1")], "", "", "TVM 0.11.1"),
        ([], "", "", ""),
        ([], "0.14.0", "v4.1.0", "TVM 0.14.0"),  # an archive of a graph: mlfbuild ran TVM and knows its version
        ([crt("")], "", "", ""),
    ],
)
def test_version_follows_from_exporter(
    dependencies: list[ExternalDependency], tvm: str, version: str, exporter: str
) -> None:
    (requirement,) = requirements_of(module(NEEDS_NN, *dependencies), tvm=tvm)
    assert (requirement.name, requirement.version, requirement.exporter) == ("cmsis-nn", version, exporter)
    assert requirement.headers == ("arm_nnfunctions.h", "arm_nn_types.h")


def test_metadata_takes_precedence() -> None:
    kws = module(NEEDS_NN, crt("0.14.0"), NAMED)
    assert requirements_of(kws) == (Requirement("cmsis-nn", "v6.0.0", NAMED.url, "git", "kws"),)
    assert requirements_of(kws)[0].declared
    assert with_requirements(kws) is kws


def test_requirement_without_version_has_that_of_the_exporter() -> None:
    kws = module("int x;", crt("0.14.0"), replace(NAMED, version_spec=""))
    assert requirements_of(kws) == (Requirement("cmsis-nn", "v4.1.0", NAMED.url, "git", "kws", exporter="TVM 0.14.0"),)


def test_repeated_requirements_are_kept_only_if_they_differ() -> None:
    later = replace(NAMED, short_name="cmsis-nn", version_spec="v7.0.0")
    found = requirements_of(module("", NAMED, replace(NAMED, short_name="cmsis nn"), later))
    assert [(requirement.name, requirement.version) for requirement in found] == [
        ("cmsis-nn", "v6.0.0"),
        ("cmsis-nn", "v7.0.0"),
    ]


def test_unknown_library_is_required_by_its_name() -> None:
    npu = ExternalDependency("NPU_Driver", "https://example.org/npu.tar.gz", "url")
    assert requirements_of(module("", npu)) == (Requirement("npu-driver", "", npu.url, "url", "kws"),)


def test_ethos_u_driver_is_recognised_by_its_wrapper() -> None:
    (requirement,) = requirements_of(module("#include <tvm_ethosu_runtime.h>\n", crt("0.12.0")))
    assert (requirement.name, requirement.version, requirement.headers) == (
        "ethos-u-core-driver",
        "22.08",
        ("tvm_ethosu_runtime.h",),
    )


@pytest.mark.parametrize(
    "text",
    [
        "/*\n#include <arm_nnfunctions.h>\n*/\n", "// #include <arm_nnfunctions.h>\n",
        'const char *where = "\\\n#include <arm_nnfunctions.h>";\n', "#define HEADER <arm_nnfunctions.h>\n",
        "#include <my_arm_nnfunctions.h>\n", "int arm_nnfunctions_h;\n",
    ],
)  # fmt: skip
def test_other_text_is_not_an_include(text: str) -> None:
    assert requirements_of(module(text, crt("0.14.0"))) == ()


def test_header_in_the_archive_is_not_a_requirement() -> None:
    kws = module(NEEDS_NN, crt("0.14.0"))
    own = tuple(CodegenFile(PurePosixPath(f"host/include/arm_nn{name}.h"), b"") for name in ("functions", "_types"))
    assert [requirement.headers for requirement in requirements_of(replace(kws, codegen=(*kws.codegen, own[0])))] == [
        ("arm_nn_types.h",)
    ]
    assert requirements_of(replace(kws, codegen=(*kws.codegen, *own))) == ()


def test_includes_of_archive_headers_count() -> None:
    assert len(requirements_of(module(NEEDS_NN, path="host/include/kws_ops.h"))) == 1
    assert requirements_of(module(NEEDS_NN, path="host/src/notes.txt")) == ()


class Unread(LazyBytes):
    """A source that must not be read."""

    def __len__(self) -> int:
        return 100

    def read(self, offset: int, size: int) -> bytes:
        raise AssertionError(f"{size} bytes from {offset} were read")


def test_sources_of_native_modules_are_not_read() -> None:
    native = replace(native_module("kws"), codegen=(CodegenFile(PurePosixPath("host/src/a.c"), Unread()),))
    assert native.model_id
    assert requirements_of(native) == ()
    with pytest.raises(AssertionError, match="were read"):
        requirements_of(replace(native, model_id=""))


def test_recognised_requirements_are_added_to_the_metadata() -> None:
    kws = module(NEEDS_NN, crt("0.14.0"))
    recorded = with_requirements(kws)
    added = ExternalDependency("cmsis-nn", REPOSITORY, "git", "v4.1.0")
    assert recorded.external_dependencies == (crt("0.14.0"), added)
    assert [
        (requirement.version, requirement.declared, requirement.exporter) for requirement in requirements_of(recorded)
    ] == [
        ("v4.1.0", True, "TVM 0.14.0")  # the origin of the version is still shown
    ]
    assert with_requirements(recorded) is recorded


def test_requirement_of_unknown_version_is_not_added() -> None:
    kws = module(NEEDS_NN)
    assert with_requirements(kws) is kws
    assert with_requirements(kws, tvm="0.14.0").external_dependencies[0].version_spec == "v4.1.0"


def test_exporter_version_is_that_of_the_runtime() -> None:
    assert exporter_version(module("", NAMED, crt("0.14.0"))) == "0.14.0"
    assert exporter_version(module("", NAMED)) == ""
