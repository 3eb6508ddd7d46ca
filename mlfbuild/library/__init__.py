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
    from mlfbuild.library.bundled_runtime import (
        BACKEND as BACKEND,
        INCLUDE_DIR as INCLUDE_DIR,
        TVM_RUNTIME as TVM_RUNTIME,
        bundled_configuration as bundled_configuration,
    )
    from mlfbuild.library.bundling import (
        FOLDER as FOLDER,
        DifferentBundlesError as DifferentBundlesError,
        bundle as bundle,
        bundle_dependency as bundle_dependency,
        bundle_files as bundle_files,
        bundle_folder as bundle_folder,
        bundle_name as bundle_name,
        bundle_names as bundle_names,
        bundles as bundles,
        description_path as description_path,
        united as united,
        unsafe_option as unsafe_option,
    )
    from mlfbuild.library.c_interface import (
        CInterface as CInterface,
        Member as Member,
        brief as brief,
        droppable_table as droppable_table,
        guarded as guarded,
        interface_parts as interface_parts,
        interface_structs as interface_structs,
    )
    from mlfbuild.library.content import (
        CHUNK as CHUNK,
        Content as Content,
        LazyBytes as LazyBytes,
        Stored as Stored,
        StoredFile as StoredFile,
        chunks as chunks,
        spooled as spooled,
        text_of as text_of,
    )
    from mlfbuild.library.data_type import (
        C_TYPES as C_TYPES,
        CODE_NAMES as CODE_NAMES,
        element_size as element_size,
        parse_dtype as parse_dtype,
        tensor_size as tensor_size,
    )
    from mlfbuild.library.dependency_problems import (
        ARCHIVE_FOLDER as ARCHIVE_FOLDER,
        URL_TYPES as URL_TYPES,
        archive_folder as archive_folder,
        problems as problems,
    )
    from mlfbuild.library.devices import DEVICE_NAMES as DEVICE_NAMES, device_name as device_name
    from mlfbuild.library.fields import Fields as Fields, parse_json as parse_json
    from mlfbuild.library.hook import (
        HookedOperator as HookedOperator,
        print_hook_type as print_hook_type,
        print_operators as print_operators,
        print_static_hooked_run as print_static_hooked_run,
    )
    from mlfbuild.library.identity import Identity as Identity, identities as identities
    from mlfbuild.library.kernel_headers import (
        KERNEL_FOLDER as KERNEL_FOLDER,
        included_names as included_names,
        is_kernel_header as is_kernel_header,
        kernel_include_dirs as kernel_include_dirs,
        reached_headers as reached_headers,
    )
    from mlfbuild.library.known_libraries import (
        CMSIS_NN as CMSIS_NN,
        STANDALONE_CRT as STANDALONE_CRT,
        KnownLibrary as KnownLibrary,
        known_library as known_library,
        library_of_header as library_of_header,
    )
    from mlfbuild.library.memory import (
        CPU_DEVICE as CPU_DEVICE,
        MainMemory as MainMemory,
        OperatorBuffer as OperatorBuffer,
        OperatorFunction as OperatorFunction,
        Pool as Pool,
        StorageEntry as StorageEntry,
        TensorInfo as TensorInfo,
        TracedTensor as TracedTensor,
    )
    from mlfbuild.library.names import (
        LINKED_ARRAY as LINKED_ARRAY,
        LINKED_PARAMETERS as LINKED_PARAMETERS,
        MERGED_SYSTEM_LIBRARY as MERGED_SYSTEM_LIBRARY,
        MODULE_CONTEXT as MODULE_CONTEXT,
        SHARED_WORKSPACE as SHARED_WORKSPACE,
        SYSTEM_LIBRARY as SYSTEM_LIBRARY,
        WORKSPACE_POOL as WORKSPACE_POOL,
        facts_header as facts_header,
        header_names as header_names,
        macro_prefix as macro_prefix,
        macro_words as macro_words,
        sanitize_name as sanitize_name,
        struct_prefix as struct_prefix,
        symbol_prefix as symbol_prefix,
    )
    from mlfbuild.library.network import (
        ARENA as ARENA,
        DIGEST_LENGTH as DIGEST_LENGTH,
        INPUT as INPUT,
        MEMORIES as MEMORIES,
        OUTPUT as OUTPUT,
        Network as Network,
        NetworkConstant as NetworkConstant,
        NetworkOperator as NetworkOperator,
        NetworkScratch as NetworkScratch,
        NetworkTensor as NetworkTensor,
        RemovedChannels as RemovedChannels,
    )
    from mlfbuild.library.numpy_types import dtype_called as dtype_called, is_supported as is_supported
    from mlfbuild.library.other_devices import (
        DEVICE_CODE_SUFFIXES as DEVICE_CODE_SUFFIXES,
        HOST_FOLDER as HOST_FOLDER,
        DeviceCode as DeviceCode,
        all_files as all_files,
        device_code as device_code,
        device_of as device_of,
        with_files as with_files,
    )
    from mlfbuild.library.params import (
        ParamInfo as ParamInfo,
        Params as Params,
        load_params as load_params,
        param_infos as param_infos,
        save_params as save_params,
    )
    from mlfbuild.library.params_json import (
        load_params_bson as load_params_bson,
        load_params_json as load_params_json,
    )
    from mlfbuild.library.repeated_functions import (
        corrected_files as corrected_files,
        corrected_sources as corrected_sources,
        repeated_in as repeated_in,
    )
    from mlfbuild.library.request import (
        Compiler as Compiler,
        CompileRequest as CompileRequest,
        CompilerProgram as CompilerProgram,
        ExternalCompiler as ExternalCompiler,
        OptionValue as OptionValue,
        check_switch as check_switch,
        invalid_option as invalid_option,
        refuse_options as refuse_options,
        refused as refused,
    )
    from mlfbuild.library.requirement import (
        Requirement as Requirement,
        exporter_version as exporter_version,
        requirements_of as requirements_of,
        runtime_requirement as runtime_requirement,
        with_requirements as with_requirements,
    )
    from mlfbuild.library.requirement_names import NAME as NAME, short_name as short_name
    from mlfbuild.library.resolved_library import ResolvedLibrary as ResolvedLibrary
    from mlfbuild.library.stable_names import own_name as own_name, port_names as port_names
    from mlfbuild.library.value import (
        FULL_MODEL as FULL_MODEL,
        OPERATOR as OPERATOR,
        ArchiveFile as ArchiveFile,
        CodegenFile as CodegenFile,
        DeviceContext as DeviceContext,
        ExternalDependency as ExternalDependency,
        Fact as Fact,
        Library as Library,
        Module as Module,
        ModuleTarget as ModuleTarget,
        UnknownField as UnknownField,
    )
else:
    __getattr__ = lazy_attributes(__name__)
