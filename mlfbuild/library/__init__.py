"""Libraries: the result of a compiler and the content of an archive. The room of the format's values.

**What.** Model Library Format (MLF) is a tar file with C code, ``metadata.json``, parameters and sometimes a graph. TVM
defined it and removed it in 0.19; ``metadata.versions`` has the seven versions of it that exist. This room has one
value for all of them, ``Library``, and reads and writes the parts. Compilers return a ``Library``, the archive writer
takes one, and every other room works on it, so that none of them knows which version or which compiler a file came
from.

**Data.** A library has *modules*: one network or one operator each, with an executor (``aot`` calls functions,
``graph`` interprets a table), inputs and outputs in call order, sizes in bytes, codegen files, parameters, and required
libraries. ``value`` and ``network`` define it. All values are frozen: a change is ``dataclasses.replace``.
Contents of files may stay in the archive until they are used (``content``), because parameters of 100 MB are common::

    library = Library((Module(name="kws", executor="aot", ...),))
    library.module("kws").inputs[0].size

**Modules.** ``metadata`` (``metadata.json``), ``graph_json``, ``params`` (TVM's binary form) and ``params_json`` (JSON
and BSON) read and write the forms of the parts. ``names``, ``data_type`` and ``other_devices`` hold TVM's names and
types; ``requirement`` the libraries that code needs; ``bundling`` those that an archive has in
it; ``request`` what a compiler is asked for, so that compilers and drivers do not know each other.

**Rules.**

1. What was read is written again. Keys that no version defines are kept as ``UnknownField`` with their place, so that
   tools of others do not lose theirs. What mlfbuild adds is under one key, ``mlfbuild`` (``metadata.extension``).
2. The same library makes the same bytes: no times, no paths of a machine, and sorted keys wherever order means nothing.
3. Archives are untrusted. ``Fields`` reads JSON with the type that each key must have; a wrong one is an
   ``InputFileError`` with the key's path, never a ``KeyError``. Sizes are checked before memory is allocated.
4. Names of C are derived in one place (``names``): ``tvmgen_kws_run`` of ``kws`` must be the same in the header, in the
   symbol table that reports read, and in the test firmware.

**Example.** ``{"memory": {"functions": {"main": [{"workspace_size_bytes": 4096}]}}}`` in ``metadata.json`` becomes
``module.main[0].workspace_size == 4096``; the version that has the number elsewhere is read to the same value.

**What it does not do.** It reads and writes no files: the tar file and the layout of archives are in
``mlfbuild.archive``. It does not compile, and does not judge whether code is right (``archive.validate`` does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.library.bundling import (
        BACKEND, FOLDER, INCLUDE_DIR, TVM_RUNTIME, DifferentBundlesError, ResolvedLibrary, bundle, bundle_dependency,
        bundle_files, bundle_folder, bundle_name, bundle_names, bundled_configuration, bundles, description_path,
        united, unsafe_option,
    )
    from mlfbuild.library.c_interface import (
        CInterface, HookedOperator, Member, brief, droppable_table, guarded, interface_parts, interface_structs,
        print_hook_type, print_operators, print_static_hooked_run, print_static_pools, print_static_pools_declaration,
    )
    from mlfbuild.library.content import CHUNK, Content, LazyBytes, Stored, StoredFile, chunks, spooled, text_of
    from mlfbuild.library.data_type import C_TYPES, CODE_NAMES, element_size, parse_dtype, tensor_size
    from mlfbuild.library.dependency_problems import ARCHIVE_FOLDER, URL_TYPES, archive_folder, problems
    from mlfbuild.library.fields import Fields, parse_json
    from mlfbuild.library.identity import Identity, identities
    from mlfbuild.library.kernel_headers import (
        KERNEL_FOLDER, corrected_files, corrected_sources, included_names, is_kernel_header, kernel_include_dirs,
        reached_headers, repeated_in,
    )
    from mlfbuild.library.kernel_plan import PLAN, is_plan, operator_plan, plan_json, with_plan
    from mlfbuild.library.names import (
        LINKED_ARRAY, LINKED_PARAMETERS, MERGED_SYSTEM_LIBRARY, MODULE_CONTEXT, SHARED_WORKSPACE, SYSTEM_LIBRARY,
        WORKSPACE_POOL, facts_header, header_names, macro_prefix, macro_words, own_name, port_names, sanitize_name,
        struct_prefix, symbol_prefix,
    )
    from mlfbuild.library.network import (
        ARENA, DIGEST_LENGTH, INPUT, MEMORIES, OUTPUT, Network, NetworkConstant, NetworkKernel, NetworkMemory,
        NetworkOperator, NetworkPoint, NetworkRows, NetworkScratch, NetworkTensor, RemovedChannels,
    )
    from mlfbuild.library.npu import NpuEstimate, NpuFacts, NpuLayer
    from mlfbuild.library.numpy_types import dtype_called, is_supported, round_half_away
    from mlfbuild.library.other_devices import (
        DEVICE_CODE_SUFFIXES, DEVICE_NAMES, HOST_FOLDER, DeviceCode, all_files, data_symbol, device_code, device_name,
        device_of, npu_symbol, with_files,
    )
    from mlfbuild.library.parameter_blob import (
        BLOB_ALIGNMENT, BLOB_HEADER, BLOB_MAGIC, PARAMETERS, REPLACEABLE, ParameterBlob, aligned_parts, blob_file,
        blob_path, read_blob,
    )
    from mlfbuild.library.params import Array, ParamInfo, Params, load_params, param_infos, save_params
    from mlfbuild.library.params_json import load_params_bson, load_params_json, save_params_bson, save_params_json
    from mlfbuild.library.request import (
        Compiler, CompileRequest, CompilerProgram, ExternalCompiler, OptionValue, check_switch, invalid_option,
        refuse_options,
    )
    from mlfbuild.library.requirement import (
        CMSIS_NN, ETHOS_U, STANDALONE_CRT, KnownLibrary, Requirement, exporter_version, known_library,
        library_of_header, requirements_of, runtime_requirement, with_requirements,
    )
    from mlfbuild.library.requirement_names import NAME, short_name
    from mlfbuild.library.value import (
        CPU_DEVICE, EXTENSION_DEVICE, FULL_MODEL, OPERATOR, ArchiveFile, CodegenFile, DeviceContext, ExternalDependency,
        Fact, Library, MainMemory, Module, ModuleTarget, OperatorBuffer, OperatorFunction, Pool, StorageEntry,
        TensorInfo, TracedTensor, UnknownField, same_array,
    )
else:
    __getattr__ = lazy_attributes(__name__)
