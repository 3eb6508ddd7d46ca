"""Libraries: the result of a compiler and the content of an archive.

``value``, ``memory`` and ``network`` define the value ``Library``. Contents of files may stay in the archive until they
are used (``content``). ``metadata`` (``metadata.json``), ``graph_json`` and ``params`` read and write the forms of the
parts in an archive; ``names``, ``data_type`` and ``devices`` hold TVM's names and types::

    library = Library((Module(name="kws", executor="aot", ...),))
    library.module("kws").inputs[0].size

The tar file and the layout of archives are in ``mlfbuild.archive``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.library.bundled_runtime import BACKEND, INCLUDE_DIR, TVM_RUNTIME, bundled_configuration
    from mlfbuild.library.bundling import (
        FOLDER, DifferentBundlesError, bundle, bundle_dependency, bundle_files, bundle_folder, bundle_name,
        bundle_names, bundles, description_path, united, unsafe_option,
    )
    from mlfbuild.library.c_interface import (
        CInterface, Member, brief, droppable_table, guarded, interface_parts, interface_structs,
    )
    from mlfbuild.library.content import CHUNK, Content, LazyBytes, Stored, StoredFile, chunks, spooled, text_of
    from mlfbuild.library.data_type import C_TYPES, CODE_NAMES, element_size, parse_dtype, tensor_size
    from mlfbuild.library.dependency_problems import ARCHIVE_FOLDER, URL_TYPES, archive_folder, problems
    from mlfbuild.library.devices import DEVICE_NAMES, device_name
    from mlfbuild.library.fields import Fields, parse_json
    from mlfbuild.library.hook import HookedOperator, print_hook_type, print_operators, print_static_hooked_run
    from mlfbuild.library.identity import Identity, identities
    from mlfbuild.library.kernel_headers import (
        KERNEL_FOLDER, included_names, is_kernel_header, kernel_include_dirs, reached_headers,
    )
    from mlfbuild.library.kernel_plan import PLAN, is_plan, operator_plan, plan_json, with_plan
    from mlfbuild.library.known_libraries import (
        CMSIS_NN, STANDALONE_CRT, KnownLibrary, known_library, library_of_header,
    )
    from mlfbuild.library.memory import (
        CPU_DEVICE, MainMemory, OperatorBuffer, OperatorFunction, Pool, StorageEntry, TensorInfo, TracedTensor,
    )
    from mlfbuild.library.names import (
        LINKED_ARRAY, LINKED_PARAMETERS, MERGED_SYSTEM_LIBRARY, MODULE_CONTEXT, SHARED_WORKSPACE, SYSTEM_LIBRARY,
        WORKSPACE_POOL, facts_header, header_names, macro_prefix, macro_words, sanitize_name, struct_prefix,
        symbol_prefix,
    )
    from mlfbuild.library.network import (
        ARENA, DIGEST_LENGTH, INPUT, MEMORIES, OUTPUT, Network, NetworkConstant, NetworkKernel, NetworkOperator,
        NetworkRows, NetworkScratch, NetworkTensor, RemovedChannels,
    )
    from mlfbuild.library.numpy_types import dtype_called, is_supported
    from mlfbuild.library.other_devices import (
        DEVICE_CODE_SUFFIXES, HOST_FOLDER, DeviceCode, all_files, device_code, device_of, with_files,
    )
    from mlfbuild.library.params import Array, ParamInfo, Params, load_params, param_infos, save_params
    from mlfbuild.library.params_json import load_params_bson, load_params_json, save_params_bson, save_params_json
    from mlfbuild.library.repeated_functions import corrected_files, corrected_sources, repeated_in
    from mlfbuild.library.request import (
        Compiler, CompileRequest, CompilerProgram, ExternalCompiler, OptionValue, check_switch, invalid_option,
        refuse_options, refused,
    )
    from mlfbuild.library.requirement import (
        Requirement, exporter_version, requirements_of, runtime_requirement, with_requirements,
    )
    from mlfbuild.library.requirement_names import NAME, short_name
    from mlfbuild.library.resolved_library import ResolvedLibrary
    from mlfbuild.library.stable_names import own_name, port_names
    from mlfbuild.library.value import (
        FULL_MODEL, OPERATOR, ArchiveFile, CodegenFile, DeviceContext, ExternalDependency, Fact, Library, Module,
        ModuleTarget, UnknownField,
    )
else:
    __getattr__ = lazy_attributes(__name__)
