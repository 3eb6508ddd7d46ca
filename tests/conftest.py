"""Fixtures that every test may use; what a machine lacks skips with a clear word, or fails under ``MLFBUILD_CI=1``."""

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS))  # makes tests/support importable as `support`

from support.cmsis_nn import real_cmsis_nn, write_cmsis_nn  # noqa: E402 - the line before it finds it
from support.examples import PUSH, SWEEP  # noqa: E402
from support.golden_files import GOLDEN, expand_all, expected, reduce_all  # noqa: E402 - as the lines before

CXX = "the product is C, and `make test` does not install what only C++ needs"


# A busy machine is no mistake: no test is judged by how long an example took.
for name, count in ((PUSH, 30), (SWEEP, 100)):
    hypothesis.settings.register_profile(
        name,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize=True,
        max_examples=count,
    )
hypothesis.settings.load_profile(PUSH)
# Hypothesis also draws the numbers in the source of all modules of ours that are loaded, which are others in each
# process of pytest-xdist: examples would differ from run to run in spite of derandomize.
providers.is_local_module_file = lambda _: False

# Tests count what is compiled; those of the cache switch it on for a folder of their own (``results_cache``).
os.environ["MLFBUILD_CACHE_DISABLE"] = "1"

# Hundreds of tests build the same firmware in folders of their own. The folder of the cache is that of the user also in
# tests with another home, and without the base directory each folder would be another build for ccache.
if (_ccache := shutil.which("ccache")) is not None:
    os.environ.setdefault("CMAKE_C_COMPILER_LAUNCHER", _ccache)
    os.environ.setdefault("CCACHE_DIR", str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ccache"))
    os.environ.setdefault("CCACHE_BASEDIR", "/")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background so, and the programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files with what the tests got")


def _updates_golden_files(config: pytest.Config) -> bool:
    """Whether this process is the one that starts and ends an update."""
    return config.getoption("--update-golden") and not hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if _updates_golden_files(config):
        expand_all()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _updates_golden_files(config):
        reduce_all()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage in what stays: ten thousand tests and their modules take seconds of each process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(200_000, 100, 100)  # a twentieth of the time of all tests is Python's search for cycles


def unavailable(reason: str) -> None:
    """Skip the test, or fail it where CI promises that nothing is missing."""
    if os.environ.get("MLFBUILD_CI") == "1":
        pytest.fail(f"CI must have this: {reason}")
    pytest.skip(reason)


@pytest.fixture
def without_ccache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CMake start the compiler itself: ccache rewrites paths, which messages and debug information contain."""
    monkeypatch.delenv("CMAKE_C_COMPILER_LAUNCHER", raising=False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of models, vectors and archives beside the repository (``MLFBUILD_SHARED`` overrides)."""
    folder = Path(os.environ.get("MLFBUILD_SHARED", TESTS.parent.parent / "shared"))
    if not (folder / "models").is_dir():
        unavailable(f"{folder}: the folder of test data beside the repository is missing")
    return folder


@pytest.fixture
def results_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache of results, which builds of this test use."""
    monkeypatch.delenv("MLFBUILD_CACHE_DISABLE")
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "mlfbuild-cache"))
    return tmp_path / "mlfbuild-cache/results"


@pytest.fixture(scope="session")
def tool() -> Callable[..., str]:
    """A function that returns the path of a program, after it has looked for ``others`` too."""

    def find(name: str, *others: str) -> str:
        for other in others:
            find(other)
        path = shutil.which(name)
        if path is None and name == "g++":
            pytest.skip(f"{name} is not installed: {CXX}")
        if path is None:
            unavailable(f"{name} is not installed")
        assert path is not None
        return path

    return find


@pytest.fixture(scope="session")
def cross_cxx(tool: Callable[[str], str]) -> None:
    """Skips the test where the cross compiler has no C++ library, which Debian packs separately."""
    command = [tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4", "-mthumb", "-print-file-name=libstdc++_nano.a"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip(f"libstdc++-arm-none-eabi-newlib is not installed: {CXX}")


@pytest.fixture(scope="session")
def newest_clang() -> dict[str, str]:
    """Environment in which mlfbuild's toolchain files take the newest clang of this machine."""
    found = [
        path for path in map(shutil.which, [*(f"clang-{version}" for version in range(30, 13, -1)), "clang"]) if path
    ]
    if not found:
        unavailable("clang is not installed")
    return {"MLFBUILD_CLANG": found[0]}


@pytest.fixture(scope="session")
def stub_cmsis_nn_4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for CMSIS-NN v4.1.0, the version that TVM 0.14 calls."""
    return write_cmsis_nn(tmp_path_factory.mktemp("cmsis-nn-4"), "v4.1.0")


@pytest.fixture(scope="session")
def stub_cmsis_nn_7(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for CMSIS-NN v7.0.0."""
    return write_cmsis_nn(tmp_path_factory.mktemp("cmsis-nn-7"), "v7.0.0")


@pytest.fixture(scope="session")
def cmsis_nn_4() -> Path:
    """CMSIS-NN v4.1.0 itself."""
    return real_cmsis_nn("MLFBUILD_CMSIS_NN_4", "v4.1.0")


@pytest.fixture(scope="session")
def cmsis_nn_7() -> Path:
    """CMSIS-NN v7.0.0 itself."""
    return real_cmsis_nn("MLFBUILD_CMSIS_NN_7", "v7.0.0")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function that compares text with ``golden/<module>/<test>/<name>``."""
    test = re.sub(r"[^A-Za-z0-9_.=-]+", "_", request.node.name).strip("_")
    folder = GOLDEN / request.node.path.relative_to(TESTS).with_suffix("") / test

    def compare(text: str, name: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if (wanted := expected(path)) is None:
            pytest.fail(f"{path} is missing; run pytest with --update-golden and review the new file")
        assert text == wanted, f"differs from {path}; --update-golden accepts it"

    return compare


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests measured: the property ``rate``, which also comes from workers."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    rates = sorted(str(value) for report in reports for name, value in report.user_properties if name == "rate")
    if len(rates) > 2:
        terminalreporter.section("rates of differing values")
        terminalreporter.write("\n".join(rates) + "\n")
