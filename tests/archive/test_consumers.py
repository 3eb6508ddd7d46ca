"""TVM 0.14's own tools take the archives of the native compiler, in the layouts that the documentation lists."""

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.archive import write_archive
from mlfbuild.core.files import sha256
from mlfbuild.library import Library
from mlfbuild.library.params import load_params
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from support.host_c import run, run_on_host
from support.native import request
from support.tflite_builder import Network
from support.tvm_consumers import MODULE_MACRO, arduino, crt_host, stm32, unpacked, zephyr
from support.tvm_headers import write_tvm_headers

Array = npt.NDArray[np.int8]
Consumer = Callable[[Path, Path], list[Path]]

DOCS = Path(__file__).parents[2] / "docs/archive.md"
FORMS = {
    "C interface": (None, {}),
    "`interface-api: packed`": (None, {"interface-api": "packed"}),
    "`executor: graph`": ("graph", {}),
}
LAYOUTS = ("standard", "single-file")
SIZE, RESULTS = 6 * 6 * 3, 10


def compiled(executor: str | None, options: Mapping[str, str], name: str = "default", cpu: str = "host") -> Library:
    random = np.random.default_rng(5)
    made = Network()
    x = made.input((1, 6, 6, 3), 0.05, 4, name="image")
    weights = random.integers(-127, 128, (4, 3, 3, 3), dtype=np.int8)
    y = made.conv2d(x, weights, weight_scales=[0.02], scale=0.5, zero_point=2)
    y = made.reshape(y, (1, 64))
    dense = random.integers(-127, 128, (RESULTS, 64), dtype=np.int8)
    y = made.fully_connected(y, dense, weight_scales=[0.02], scale=1.5, zero_point=0)
    model = made.build([made.softmax(y)])
    wanted = replace(request(name, cpu=cpu), executor=executor, options=options)
    return compile_graph(parse_tflite(model, name, name), wanted, sha256(model))


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """The archive of each form in each layout."""
    folder = tmp_path_factory.mktemp("archives")
    found = {}
    for number, (form, (executor, options)) in enumerate(FORMS.items()):
        for layout in LAYOUTS:
            found[form, layout] = folder / f"{number}_{layout}.tar"
            write_archive(compiled(executor, {**options, "layout": layout}), found[form, layout])
    return found


@pytest.fixture(scope="module")
def case() -> tuple[Array, Array]:
    """An input, and the output of the code for the C interface."""
    image = np.random.default_rng(6).integers(-128, 128, (1, 6, 6, 3), dtype=np.int8)
    (output,) = run_on_host(compiled(None, {}), [image], sanitize=False)
    return image, output


# What TVM's Python code reads ----------------------------------------------------------------------------------------


def test_importer_of_tvmc_finds_the_graph_and_the_parameters(archives: dict[tuple[str, str], Path]) -> None:
    """It requires exactly one module and one executor, and fixed names of the other files."""
    for (form, _), archive in archives.items():
        with tarfile.open(archive) as tar:
            files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
            content = {name: file.read() for name, file in files.items() if file is not None}
        ((name, module),) = json.loads(content["./metadata.json"])["modules"].items()
        (executor,) = module["executors"]
        params = load_params(content[f"./parameters/{name}.params"], name)
        assert ((executor == "graph"), bool(params)) == (("graph" in form),) * 2
        graph = content.get(f"./executor-config/graph/{name}.graph")
        assert (graph is not None and {"nodes", "arg_nodes", "heads", "attrs"} <= json.loads(graph).keys()) == (
            executor == "graph"
        )


# What its projects compile -------------------------------------------------------------------------------------------

HEADER = r"""
#include "tvmgen_default.h"

int run(int8_t *image, int8_t *scores);
int run(int8_t *image, int8_t *scores)
{
    struct tvmgen_default_inputs inputs = {image};
    struct tvmgen_default_outputs outputs = {scores};
    return tvmgen_default_run(&inputs, &outputs);
}
"""

MAIN_FUNCTION = r"""
#include <stdint.h>

int32_t tvmgen_default___tvm_main__(void *input, void *output);
int run(int8_t *image, int8_t *scores) { return tvmgen_default___tvm_main__(image, scores); }
"""

LOOKUP = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/metadata_types.h>

void *TVMBackendAllocWorkspace(int type, int id, uint64_t size, int code, int bits) { return malloc((size_t)size); }
int TVMBackendFreeWorkspace(int type, int id, void *memory) { free(memory); return 0; }

static TVMBackendPackedCFunc function(const char *name)
{
    const TVMFuncRegistry *registry = TVMSystemLibEntryPoint()->registry;
    const char *at = registry->names + 2;
    for (size_t i = 0; *at != 0; i++, at += strlen(at) + 1) {
        if (strcmp(at, name) == 0) {
            return registry->funcs[i];
        }
    }
    return NULL;
}
"""

GRAPH = (
    LOOKUP
    + r"""
int run(int8_t *image, int8_t *scores)
{
    return (TVMSystemLibEntryPoint()->registry->names[0] == 3) - 1; /* another test runs graphs */
}
"""
)

AOT_EXECUTOR = (
    LOOKUP
    + r"""
static DLTensor tensor(const struct TVMTensorInfo *info, void *data, size_t size)
{
    DLTensor made = {data, {kDLCPU, 0}, (int32_t)info->num_shape, info->dtype, (int64_t *)info->shape, NULL, 0};
    for (int64_t i = 0; i < info->num_shape; i++) {
        size /= (size_t)info->shape[i];
    }
    if (size != 1 || info->dtype.code != kDLInt || info->dtype.bits != 8 || info->dtype.lanes != 1) {
        exit(3);
    }
    return made;
}

int run(int8_t *image, int8_t *scores)
{
    TVMValue found, arguments[2];
    int code, codes[2] = {kTVMDLTensorHandle, kTVMDLTensorHandle};
    char name[100];
    if (function("tvmgen_default_get_c_metadata")(NULL, NULL, 0, &found, &code, NULL) != 0) {
        return -1;
    }
    const struct TVMMetadata *about = found.v_handle;
    if (about->version != 1 || about->num_inputs + about->num_outputs != 2 || about->num_workspace_pools != 0
        || strcmp(about->inputs[0].name, "image") != 0 || strcmp(about->outputs[0].name, "output0") != 0) {
        return -1;
    }
    DLTensor input = tensor(about->inputs, image, 108), output = tensor(about->outputs, scores, 10);
    arguments[0].v_handle = &input;
    arguments[1].v_handle = &output;
    snprintf(name, sizeof name, "%s_run", about->mod_name);
    if (function(name)(arguments, codes, 1, &found, &code, NULL) == 0) {
        return -1; /* one argument is missing */
    }
    return function(name)(arguments, codes, 2, &found, &code, NULL);
}
"""
)

PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>

int run(int8_t *image, int8_t *scores);

int main(void)
{
    static int8_t image[108], scores[10];
    if (fread(image, 1, sizeof image, stdin) != sizeof image || run(image, scores) != 0) {
        return 1;
    }
    return fwrite(scores, 1, sizeof scores, stdout) != sizeof scores;
}
"""

HOST_DRIVEN = {"`interface-api: packed`": AOT_EXECUTOR, "`executor: graph`": GRAPH}
EXAMPLE = {"C interface": MAIN_FUNCTION, "`interface-api: packed`": MAIN_FUNCTION}
PROJECTS: dict[str, tuple[Consumer, Mapping[str, str]]] = {
    "Zephyr, `aot_standalone_demo`": (zephyr, {"C interface": HEADER}),
    "Zephyr, `host_driven`": (zephyr, HOST_DRIVEN),
    "CRT on this machine (`crt`)": (crt_host, HOST_DRIVEN),
    "Arduino, `example_project`": (arduino, EXAMPLE),
    "Arduino, `host_driven`": (arduino, HOST_DRIVEN),
    "STM32, `CodeEmitter`": (stm32, dict.fromkeys(FORMS, GRAPH)),
}


def objects_of(consumer: Consumer, archive: Path, folder: Path) -> list[Path] | None:
    """Return the object files that a kind of project makes; ``None`` if it does not find a file."""
    try:
        return consumer(archive, folder)
    except AssertionError as error:
        if re.search(r"fatal error: \S+\.h: No such file", str(error)) is None:
            raise
        return None
    except (FileNotFoundError, IsADirectoryError):
        return None


def documented() -> dict[tuple[str, str], str]:
    """Return the cells of the table in the documentation, by project and form."""
    lines = DOCS.read_text().split("## Archives for other tools", 1)[1].split("\n## ", 1)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert rows[0][1:] == list(FORMS)
    return {(row[0], form): cell for row in rows[1:] for form, cell in zip(FORMS, row[1:], strict=True)}


def test_projects_take_the_layouts_that_the_documentation_lists(
    archives: dict[tuple[str, str], Path], case: tuple[Array, Array], tmp_path: Path
) -> None:
    made = {
        (consumer, form, layout): objects_of(consumer, archive, tmp_path / f"{consumer.__name__}-{archive.stem}")
        for (form, layout), archive in archives.items()
        for consumer in (zephyr, crt_host, arduino, stm32)
    }
    found = {}
    for project, (consumer, programs) in PROJECTS.items():
        for form in FORMS:
            objects = {layout: made[consumer, form, layout] for layout in LAYOUTS if form in programs}
            taken = {layout: each for layout, each in objects.items() if each is not None}
            found[project, form] = {(): "no", ("single-file",): "`single-file`", LAYOUTS: "any"}[tuple(taken)]
            for each in taken.values():
                output = executed(programs[form], each, tmp_path, case[0])
                assert "graph" in form or output == case[1].tobytes()
    assert found == documented()
    plain = made[zephyr, "C interface", "standard"]
    assert plain is not None
    with pytest.raises(AssertionError, match="TVMSystemLibEntryPoint"):  # TVM's runtime calls it
        executed(GRAPH, plain, tmp_path, case[0])


def executed(program: str, objects: list[Path], folder: Path, image: Array) -> bytes:
    """Link the program with the model's code, and return what it prints for ``image``."""
    (folder / "main.c").write_text(program + PROGRAM)
    root = objects[0].parent
    include = [root / "crt/include", root / "src/standalone_crt/include", root / "model/codegen/host/include"]
    words = [word for path in include for word in ("-I", path)]
    run(["gcc", "-w", MODULE_MACRO, *words, folder / "main.c", *objects, "-lm", "-o", folder / "main"])
    done = subprocess.run([folder / "main"], input=image.tobytes(), stdout=subprocess.PIPE)
    assert done.returncode == 0
    return done.stdout


# The recipe in README.md ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tvm_repository(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which git clones a repository with TVM's headers instead of TVM's own."""
    folder = tmp_path_factory.mktemp("tvm")
    headers = write_tvm_headers(folder / "include")
    (folder / "3rdparty/dlpack/include").mkdir(parents=True)
    (headers / "dlpack").rename(folder / "3rdparty/dlpack/include/dlpack")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "TVM"], ["tag", "v0.14.0"]):
        run(["git", *identity, *command], folder)
    settings = {"KEY_0": f"url.file://{folder}.insteadOf", "VALUE_0": "https://github.com/apache/tvm", "COUNT": "1"}
    return {f"GIT_CONFIG_{name}": value for name, value in settings.items()}


@pytest.mark.parametrize(
    ("layout", "cpu", "nm"), [("standard", "cortex-m4", "arm-none-eabi-nm"), ("single-file", "host", "nm")]
)
@pytest.mark.parametrize("form", FORMS)
def test_recipe_compiles_as_written(
    form: str,
    layout: str,
    cpu: str,
    nm: str,
    tmp_path: Path,
    tool: Callable[[str], str],
    tvm_repository: dict[str, str],
) -> None:
    executor, options = FORMS[form]
    write_archive(compiled(executor, {**options, "layout": layout}, "net", cpu), tmp_path / "net.tar")
    folder = tmp_path / "empty"
    unpacked(tmp_path / "net.tar", folder)
    recipe = (folder / "README.md").read_text().split("By hand", 1)[1].split("```sh\n", 1)[1].split("```", 1)[0]
    environment = {**os.environ, **tvm_repository}
    done = subprocess.run(["sh", "-e"], input=recipe, cwd=folder, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    defined = run([tool(nm), "--defined-only", folder / "libnet.a"]).split()
    assert ("TVMSystemLibEntryPoint" in defined) == (form != "C interface")
    assert ("tvmgen_net_run" in defined) == (executor is None)
