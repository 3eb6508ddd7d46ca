"""The names of the files that the compiler writes for a model, known without compiling, to configure builds.

Which kernel headers an archive contains is an exception: it depends on the lowered operators.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from mlfbuild.library import CodegenFile, Library, Module, TensorInfo, facts_header
from mlfbuild.library.graph_json import INPUT, ExecutorGraph, GraphNode, NodeEntry, graph_text
from mlfbuild.native.c_calling_form import CodeForm
from mlfbuild.native.kernels import kernel_files, kernel_headers

_HANDED_ON = ExecutorGraph(
    nodes=(GraphNode(INPUT, "byte"),),
    arg_nodes=(0,),
    heads=(NodeEntry(0),),
    node_row_ptr=(0, 1),
    shape=((1,),),
    dltype=("uint8",),
    storage_id=(0,),
)


def source_path(name: str, number: int = 0) -> PurePosixPath:
    """Return the path of a C file of the model ``name`` below ``codegen/``."""
    return PurePosixPath(f"host/src/{name}_lib{number}.c")


def header_path(name: str) -> PurePosixPath:
    """Return the path of the header of the model ``name`` below ``codegen/``."""
    return PurePosixPath(f"host/include/tvmgen_{name}.h")


def facts_path(name: str) -> PurePosixPath:
    """Return the path of the header of the model ``name`` for the graph executor, which declares no run function."""
    return PurePosixPath("host/include", facts_header(name))


def outline_library(name: str, form: CodeForm) -> Library:
    """Return a library with the file names of the compiled model; contents that depend on the model are empty.

    It has all kernel headers, of which the compiled model has some. The graph of a module for the graph executor
    returns its only input, which is enough to determine the files of the static executor; a packed function is enough
    to determine those around it.
    """
    paths = [source_path(name, number) for number in range(form.sources)]
    byte = () if form.has_c_interface else (TensorInfo("byte", "uint8", 1, (1,)),)
    header = header_path(name) if form.has_c_interface else facts_path(name)
    code = dict.fromkeys((*paths, header), b"")
    if form.packed:
        code[paths[0]] = f"int32_t tvmgen_{name}_run(void)\n{{\n}}\n".encode()
    module = Module(
        name=name,
        executor="graph" if form.graph else "aot",
        targets=(),
        main=(),
        operator_functions=(),
        codegen=(
            *(CodegenFile(path, content) for path, content in code.items()),
            *(() if form.single_file else kernel_files(tuple(kernel_headers()))),
        ),
        inputs=byte,
        outputs=byte,
        graph_json=graph_text(_HANDED_ON).encode() if form.graph else None,
        source_text=b"-",  # an empty text would have no file
        model_id="-",
        interface="" if form.graph else "packed" if form.packed else "c",
    )
    return Library((module,))
