"""Dependencies of models' objects: known for native models without scanning, found by SCons for all others."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.library import CompileRequest
from mlfbuild.native import NATIVE
from mlfbuild.scons.includes import SYSTEM_HEADERS
from mlfbuild.targets import CPUS
from support.firmware_repo import FirmwareRepo, tiny_network
from support.libraries import archive_with

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  alpha: {source: models/alpha.tflite}
  gamma: {source: models/gamma.tar}
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"], CPPPATH=["include"])
env.MlfModels("mlfbuild.yml").apply(env)
env.Program("build/app", env.Object("build/main.o", "src/main.c"))
"""
MAIN = """\
#include "tvmgen_alpha.h"
int main(void) { return tvmgen_alpha_run(0, 0) == 99; }
"""
OURS, OTHERS = "build/mlf.lib/pc/alpha/alpha_lib0.o", "build/mlf.lib/pc/gamma/gamma_helper.o"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> FirmwareRepo:
    """A repository with its own C library, which is up to date when a test begins."""
    tool("gcc")
    repo = FirmwareRepo(tmp_path_factory.mktemp("includes"))
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("src/main.c", MAIN)
    repo.write("models/gamma.tar", archive_with("gamma", '#include "platform.h"\nint gamma_speed = SPEED;\n'))
    repo.write("include/string.h", '#include "libc_settings.h"\n#include_next <string.h>\n')
    repo.write("include/libc_settings.h", "#define SMALL 1\n")
    repo.write("include/platform.h", "#define SPEED 1\n")
    repo.build("-j4")
    assert "building" not in repo.build("--debug=explain", "-Q").output, "the first build knew every dependency"
    return repo


def reasons(repo: FirmwareRepo) -> dict[str, str]:
    output = repo.build("--debug=explain", "-Q").output
    return dict(re.findall(r"rebuilding `(\S+\.o)' because (.*)", output))


@pytest.mark.sweep
def test_header_of_the_firmwares_own_c_library(repo: FirmwareRepo) -> None:
    repo.write("include/libc_settings.h", "#define SMALL 0\n")
    assert reasons(repo)[OURS] == "`include/libc_settings.h' changed"


@pytest.mark.sweep
def test_header_that_an_archive_includes_from_the_firmware(repo: FirmwareRepo) -> None:
    repo.write("include/platform.h", "#define SPEED 2\n")
    assert reasons(repo) == {OTHERS: "`include/platform.h' changed"}


def test_new_header(repo: FirmwareRepo) -> None:
    repo.write("include/stdint.h", "#include_next <stdint.h>\n")
    assert "`include/stdint.h' is a new dependency" in repo.build("--debug=explain", "-Q").output


def test_kernel_headers_are_known_by_the_hash_in_the_source(repo: FirmwareRepo) -> None:
    tree = repo.build("-n", "--tree=all", OURS).output
    nodes = {Path(name).name for name in re.findall(r"\+-(\S+)", tree)}
    assert {"alpha_lib0.c", "tvmgen_alpha.h", "string.h", "libc_settings.h"} <= nodes
    assert "fully_connected.h" not in nodes
    source = repo.read("build/mlf/pc/alpha/codegen/host/src/alpha_lib0.c").decode()
    assert '#include "mlfbuild/fully_connected.h"' in source
    assert " * Kernel headers SHA-256: " in source


def test_native_sources_include_only_known_headers(tmp_path: Path) -> None:
    model = tmp_path / "net.tflite"
    model.write_bytes(tiny_network(1))
    (module,) = NATIVE.compile(CompileRequest("net", model, CPUS["cortex-m55"])).modules
    kernels = {path.path.name for path in module.codegen if path.path.parent.name == "mlfbuild"}
    assert len(kernels) > 5
    quoted = kernels | {f"mlfbuild/{name}" for name in kernels} | {"tvmgen_net.h"}
    for file in module.codegen:
        text = file.data.decode()
        assert set(re.findall(r'#\s*include\s+"([^"]+)"', text)) <= quoted, file.path
        assert set(re.findall(r"#\s*include\s+<([^>]+)>", text)) <= {*SYSTEM_HEADERS}, file.path
