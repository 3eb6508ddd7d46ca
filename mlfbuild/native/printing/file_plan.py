"""The names of the files that the compiler writes for a model, known without compiling, to configure builds.

A build system must know its files before they exist: CMake lists sources when it configures, SCons builds a graph of
nodes, ``mlfbuild plan`` prints what would be made. Compiling a network takes seconds, and its file may be missing or
invalid at that time. So the names must depend only on the request: the name of the model, and the options that select a
``CodeForm``.

The rules:

1. The number of C files depends on the form alone: 1 with the C interface or ``layout: single-file``, 3 with
   ``interface-api: packed`` (entry, metadata, code), 2 for the graph executor (registry, functions).
2. The header is ``tvmgen_<model>.h`` if firmware calls TVM's C interface, otherwise ``mlf_<model>.h``, which has shapes
   and scales but declares no run function.
3. Contents that depend on the model are empty. A field is only filled if its presence decides whether a file exists, as
   ``source_text`` and the graph.
4. All kernel headers are listed, of which the compiled model has some. That is the exception: which ones depends on the
   lowered operators. Builds do not watch the headers; the source contains their hash (``kernels_sha256``).

``outline_library`` returns a ``Library``, not a list of names. So every later step that derives files from a library
(unpacking, the static executor, fragments) runs on it unchanged, and cannot disagree with itself about names.

For example, the files of a model ``kws`` below ``codegen/host``::

    default                     include/tvmgen_kws.h   src/kws_lib0.c
    layout: single-file         include/tvmgen_kws.h   src/kws_lib0.c, and no kernel headers
    interface-api: packed       include/mlf_kws.h      src/kws_lib0.c, kws_lib1.c, kws_lib2.c
    executor: graph             include/mlf_kws.h      src/kws_lib0.c, kws_lib1.c

A module for the graph executor has a graph that returns its only input, of one byte: enough to determine the files of
the static executor. A packed function of no content is enough for those around it.

This module does not know sizes, inputs or operators; ``compile`` is the only way to learn these.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from mlfbuild.library import CodegenFile, Library, Module, Network, TensorInfo, blob_path, facts_header
from mlfbuild.library.graph_json import INPUT, ExecutorGraph, GraphNode, NodeEntry, graph_text
from mlfbuild.native.c_calling_form import CodeForm
from mlfbuild.native.kernels import kernel_files, kernel_headers

# One input of one byte that is returned: the smallest graph that TVM's executor accepts.
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
    """Return the path of a C file of the model ``name`` below ``codegen/``.

    ``number`` counts from 0; ``CodeForm.sources`` is how many there are.
    """
    return PurePosixPath(f"host/src/{name}_lib{number}.c")


def header_path(name: str) -> PurePosixPath:
    """Return the path of the header of the model ``name`` below ``codegen/``.

    TVM uses the same name for the header of its C interface, so that firmware can change the compiler.
    """
    return PurePosixPath(f"host/include/tvmgen_{name}.h")


def facts_path(name: str) -> PurePosixPath:
    """Return the path of the header of the model ``name`` for the graph executor, which declares no run function.

    It has shapes, scales and functions to quantise, and the header of the executor includes it.
    """
    return PurePosixPath("host/include", facts_header(name))


def outline_library(name: str, form: CodeForm) -> Library:
    """Return a library with the file names of the compiled model; contents that depend on the model are empty.

    It has all kernel headers, of which the compiled model has some. The graph of a module for the graph executor
    returns its only input, which is enough to determine the files of the static executor; a packed function is enough
    to determine those around it.
    """
    paths = [source_path(name, number) for number in range(form.sources)]
    # A port of one byte is enough for files whose existence depends on having one.
    byte = () if form.has_c_interface else (TensorInfo("byte", "uint8", 1, (1,)),)
    header = header_path(name) if form.has_c_interface else facts_path(name)
    code = dict.fromkeys((*paths, header), b"")
    if form.replaceable:
        code |= dict.fromkeys((blob_path(name, "bin"), blob_path(name, "txt")), b"")
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
        network=Network(arena=0, tensors=(), operators=()),  # for plan.json
        interface="" if form.graph else "packed" if form.packed else "c",
    )
    return Library((module,))
