"""Known libraries: names, headers, and the release that belongs to a release of TVM."""

import re
from pathlib import Path

import pytest

from mlfbuild.library.requirement import (
    CMSIS_NN,
    ETHOS_U,
    KNOWN,
    KnownLibrary,
    known_library,
    library_of_header,
    short_name,
)


@pytest.mark.parametrize("text", ["cmsis-nn", "CMSIS_NN", " Cmsis NN ", "CMSIS-NN", "cmsis__nn"])
def test_spellings_of_a_short_name_are_equivalent(text: str) -> None:
    assert short_name(text) == "cmsis-nn"
    assert known_library(text) is CMSIS_NN


def test_names_and_headers_belong_to_one_library() -> None:
    assert [known.name for known in KNOWN] == [short_name(known.name) for known in KNOWN]
    headers = [header for known in KNOWN for header in known.headers]
    assert len(headers) == len(set(headers))
    assert known_library("cmsis-dsp") is None
    assert known_library("tvm_standalone_crt") is None


@pytest.mark.parametrize(
    ("include", "known"),
    [
        ("arm_nnfunctions.h", CMSIS_NN), ("CMSIS/NN/Include/arm_nn_types.h", CMSIS_NN),
        ("tvm_ethosu_runtime.h", ETHOS_U), ("arm_acle.h", None), ("ARM_NNFUNCTIONS.H", None), ("", None),
    ],
)  # fmt: skip
def test_library_is_recognised_by_its_header(include: str, known: KnownLibrary | None) -> None:
    assert library_of_header(include) is known


@pytest.mark.parametrize(
    ("version", "cmsis_nn", "ethos_u"),
    [
        ("0.14.0", "v4.1.0", "23.05"),
        ("0.14.0+g7315c9d5b", "v4.1.0", "23.05"),
        ("0.14.dev273", "v4.1.0", "23.05"),
        ("0.13.0rc0", "v4.1.0", "23.05"),
        ("0.13.dev12+gabcdef", "", ""),  # the releases of both changed during its development
        ("0.12.0", "v4.0.0", "22.08"),
        ("0.11.1", "", "21.11"),  # CMSIS-NN was a part of CMSIS 5
        ("0.11.dev3", "", "21.11"),
        ("0.8.0", "", "21.05"),
        ("0.8.dev0", "", ""),
        ("0.18.0", "v4.1.0", "23.05"),
        ("0.19.0", "", ""),  # does not export archives
        ("1.14.0", "", ""),
        ("", "", ""),
        ("main", "", ""),
        ("0.14; rm -rf", "", ""),
    ],
)
def test_release_follows_from_tvm_version(version: str, cmsis_nn: str, ethos_u: str) -> None:
    assert (CMSIS_NN.version_for_tvm(version), ETHOS_U.version_for_tvm(version)) == (cmsis_nn, ethos_u)


@pytest.mark.parametrize("release", ["cmsis_nn_4", "cmsis_nn_7"])
def test_layout_of_cmsis_nn_matches_its_releases(request: pytest.FixtureRequest, release: str) -> None:
    root: Path = request.getfixturevalue(release)
    assert all((root / CMSIS_NN.include_dirs[0] / header).is_file() for header in CMSIS_NN.headers)
    sources = {path for pattern in CMSIS_NN.sources for path in root.glob(pattern)}
    assert {"arm_convolve_wrapper_s8.c", "arm_softmax_s8.c", "arm_nntables.c"} <= {path.name for path in sources}
    (terms,) = (path for pattern in CMSIS_NN.license_files for path in root.glob(pattern))
    assert re.search(r"Apache License\s+Version 2\.0", terms.read_text())
