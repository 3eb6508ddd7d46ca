"""Make a crate of Rust: the crate ``cc`` compiles the models, and safe functions call them.

Each model is a feature of the crate, on by default, and a module with the types ``Inputs``, ``Outputs`` and
``Workspace`` and the function ``run``. The crate needs no ``std``, and no ``bindgen``: mlfbuild knows the interface.

Manifest: https://doc.rust-lang.org/cargo/reference/manifest.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from mlfbuild.c_analysis import CXX_SUFFIXES
from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree.adapters.interface import ModuleInterface, ModulePort
from mlfbuild.jobs.tree.adapters.package import DESCRIPTION, NAME, NOTICE, LibraryFiles, ModelFiles, Package
from mlfbuild.jobs.tree.library_folders import DEPENDENCIES_FOLDER
from mlfbuild.library import macro_words

RESERVED = {
    "rust": "the folder of the crate's sources has this name",
    "default": "the crate's default features have this name",
}

_TYPES = {
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float32": "f32", "float64": "f64",
}  # fmt: skip
_BITS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
"""Types of elements that have none in Rust, such as float16, and of bool, which C does not limit to 0 and 1."""
_KEYWORDS = frozenset({
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type",
    "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
})  # fmt: skip
_NEVER_RAW = frozenset({"_", "self", "super", "crate"})

_MANIFEST = """\
# {notice}
[package]
name = "{name}"
version = "{version}"
edition = "2021"
description = "{description}, made for {cpu}"
build = "rust/build.rs"

[lib]
path = "rust/lib.rs"

[build-dependencies]
cc = "1"

[features]
default = [{default}]
{features}"""
_BUILD = """\
//! Compiles the models whose features are on. {notice}

struct Library {{
    name: &'static str,
    features: &'static [&'static str],
    cpp: bool,
    files: &'static [&'static str],
    objects: &'static [&'static str],
    include_dirs: &'static [&'static str],
    options: &'static [&'static str],
    level: &'static str,
    folder: &'static str,
}}

const LIBRARIES: &[Library] = &[{libraries}];

fn main() {{
    println!("cargo:rerun-if-changed=rust/build.rs");
    for library in LIBRARIES {{
        if !library.features.iter().any(|name| std::env::var_os(name).is_some()) {{
            continue;
        }}
        println!("cargo:rerun-if-changed={{}}", library.folder);
        let mut build = cc::Build::new();
        build.cpp(library.cpp).files(library.files).includes(library.include_dirs);
        build.warnings(false);
        if !library.level.is_empty() {{
            build.opt_level_str(library.level); // its own level, also in debug builds
        }}
        for object in library.objects {{
            build.object(object);
        }}
        for option in library.options {{
            build.flag(option);
        }}
        build.compile(library.name);
    }}
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {{
        println!("cargo:rustc-link-lib=m");
    }}
}}
"""
_LIBRARY = """
    Library {{
        name: "{name}",
        features: &[{features}],
        cpp: {cpp},
        files: &[{files}],
        objects: &[{objects}],
        include_dirs: &[{include_dirs}],
        options: &[{options}],
        level: "{level}",
        folder: "{folder}",
    }},
"""
_LIB = """\
//! Machine-learning models, made for {cpu}. {notice}
#![no_std]
#![allow(non_snake_case)] // names of tensors

/// A model refused to run; the value is that of its C function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub i32);

impl core::fmt::Display for Error {{
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {{
        write!(formatter, "the model returned {{}}", self.0)
    }}
}}
{models}"""
_MEMORY = """\
/// Memory for the intermediate tensors of one run; it holds nothing between two runs.
#[repr(C, align({alignment}))]
pub struct Workspace([core::mem::MaybeUninit<u8>; {size}]);

impl Workspace {{
    pub const fn new() -> Self {{
        Self([core::mem::MaybeUninit::uninit(); {size}])
    }}
}}

impl Default for Workspace {{
    fn default() -> Self {{
        Self::new()
    }}
}}
"""
_STATE = """\
/// What the model remembers from one run to the next; one for each stream.
#[repr(C, align({alignment}))]
pub struct State([u8; {size}]);

impl State {{
    pub fn new() -> Self {{
        let mut state = Self([0; {size}]);
        state.reset();
        state
    }}

    /// The next run is like the first one.
    pub fn reset(&mut self) {{
        unsafe {{ {reset}(self.0.as_mut_ptr().cast()) }};
    }}
}}

impl Default for State {{
    fn default() -> Self {{
        Self::new()
    }}
}}
"""
_RUN = """\
/// Runs the model once.{safety}
pub {unsafe}fn run(
{arguments}) -> Result<(), crate::Error> {{
    let inputs = RawInputs {{
{inputs}    }};
    let outputs = RawOutputs {{
{outputs}    }};
    let status = {call};
    match status {{
        0 => Ok(()),
        _ => Err(crate::Error(status)),
    }}
}}
"""
_SAFETY = """
///
/// # Safety
///
/// Its workspace is static: only one call of this function may run at a time."""


def files(package: Package) -> dict[str, str]:
    """Return the files of the crate: path -> text.

    Raises ``UnsupportedModelError`` for libraries that are CMake packages.
    """
    for dependency in package.dependencies:
        if dependency.package:
            raise UnsupportedModelError(
                "cmake-package-in-crate",
                place=f"dependency {dependency.name!r}",
                reason="is a CMake package, which a crate cannot use",
                hint="name its sources in the project file, or remove --for rust",
            )
    names = [model.name for model in package.models]
    libraries = [text for model in package.models for text in _libraries(model, package)]
    libraries += [text for library in package.libraries for text in _libraries(library, package)]
    return {
        "Cargo.toml": _MANIFEST.format(
            notice=NOTICE,
            name=NAME,
            version=package.version,
            description=DESCRIPTION,
            cpu=package.cpu,
            default=_texts(names),
            features="".join(f"{name} = []\n" for name in names),
        ),
        "rust/build.rs": _BUILD.format(
            notice=NOTICE, libraries="".join(libraries).replace("},\n\n    Library", "},\n    Library")
        ),
        "rust/lib.rs": _LIB.format(
            notice=NOTICE, cpu=package.cpu, models="".join(_model(model) for model in package.models)
        ),
    }


# Compilation ---------------------------------------------------------------------------------------------------------


def _libraries(owner: ModelFiles | LibraryFiles, package: Package) -> Iterator[str]:
    """Yield the entries of ``build.rs`` for a model or a library: one for C, and one for C++ if it has any."""
    objects: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    level = ""
    if isinstance(owner, ModelFiles):
        name, folder, users = f"mlf_{owner.name}", owner.name, [owner]
        needed = [path for library in package.libraries if library.name in owner.needs for path in library.include_dirs]
        folders = [*owner.include_dirs, *owner.private_include_dirs, *needed]
        objects, level = owner.objects, owner.level.removeprefix("-O")
    else:
        name, folder = f"mlf_dep_{owner.name}", f"{DEPENDENCIES_FOLDER}/{owner.name}"
        users = [model for model in package.models if owner.name in model.needs]
        folders, options = [*owner.include_dirs], owner.options
    for cpp in (False, True):
        sources = [path for path in owner.sources if (PurePosixPath(path).suffix in CXX_SUFFIXES) is cpp]
        linked = () if cpp else objects
        if sources or linked:
            yield _LIBRARY.format(
                name=f"{name}_cxx" if cpp else name,
                features=_texts(f"CARGO_FEATURE_{model.switch}" for model in users),
                cpp=str(cpp).lower(),
                files=_texts(sources),
                objects=_texts(linked),
                include_dirs=_texts(folders),
                options=_texts(options),
                level=level,
                folder=folder,
            )


def _texts(values: Iterable[str]) -> str:
    return ", ".join(json.dumps(value) for value in values)  # paths and options are ASCII without control characters


# Bindings ------------------------------------------------------------------------------------------------------------


def _model(model: ModelFiles) -> str:
    if len(model.interfaces) == 1:
        body = _interface(model.interfaces[0])
    else:
        body = "\n".join(
            f"pub mod {_name(one.module)} {{\n{_indented(_interface(one))}}}\n" for one in model.interfaces
        )
    name = _name(model.name)
    return (
        f'\n/// The model `{model.name}`.\n#[cfg(feature = "{model.name}")]\npub mod {name} {{\n{_indented(body)}}}\n'
    )


def _interface(one: ModuleInterface) -> str:
    parts = [_ports("Inputs", "&'a", one.inputs), _ports("Outputs", "&'a mut", one.outputs)]
    if one.reentrant:
        parts.append(_MEMORY.format(size=one.workspace[0], alignment=one.workspace[1]))
    if one.reset:
        parts.append(_STATE.format(size=one.state[0], alignment=one.state[1], reset=one.reset))
    return "\n".join([*parts, _run(one), _raw(one)])


def _ports(name: str, reference: str, ports: Sequence[ModulePort]) -> str:
    fields = "".join(
        f"    /// `{_shape(port)}`\n    pub {_name(port.name)}: {reference} {_array(port)},\n" for port in ports
    )
    text = f"pub struct {name}<'a> {{\n{fields}}}\n"
    words = macro_words(port.name for port in ports)
    constants = [line for port in ports for line in _quantization(words[port.name], port)]
    return text + (f"\nimpl {name}<'_> {{\n{''.join(constants)}}}\n" if constants else "")


def _quantization(word: str, port: ModulePort) -> Iterator[str]:
    import numpy as np  # only crates need it here

    if port.tensor.scale is not None:
        yield f"    pub const {word}_SCALE: f32 = {np.float32(port.tensor.scale)!s};\n"
    if port.tensor.zero_point is not None:
        yield f"    pub const {word}_ZERO_POINT: i32 = {port.tensor.zero_point};\n"


def _run(one: ModuleInterface) -> str:
    arguments = ["inputs: Inputs<'_>", "outputs: Outputs<'_>"]
    passed = ["&inputs", "&outputs"]
    if one.reentrant:
        arguments.append("workspace: &mut Workspace")
        passed.append("workspace.0.as_mut_ptr().cast()")
    if one.reset:
        arguments.append("state: &mut State")
        passed.append("state.0.as_mut_ptr().cast()")
    call = f"{one.function}({', '.join(passed)})"
    return _RUN.format(
        safety="" if one.reentrant else _SAFETY,
        unsafe="" if one.reentrant else "unsafe ",
        arguments="".join(f"    {argument},\n" for argument in arguments),
        inputs="".join(f"        {name}: inputs.{name}.as_ptr().cast(),\n" for name in _names(one.inputs)),
        outputs="".join(f"        {name}: outputs.{name}.as_mut_ptr().cast(),\n" for name in _names(one.outputs)),
        call=f"unsafe {{ {call} }}" if one.reentrant else call,
    )


def _raw(one: ModuleInterface) -> str:
    """Return the declarations of C: two structs of pointers, and the functions."""
    inputs = "".join(f"    {name}: *const core::ffi::c_void,\n" for name in _names(one.inputs))
    outputs = "".join(f"    {name}: *mut core::ffi::c_void,\n" for name in _names(one.outputs))
    arguments = ["inputs: *const RawInputs", "outputs: *const RawOutputs"]
    arguments += ["workspace: *mut core::ffi::c_void"] if one.reentrant else []
    arguments += ["kept: *mut core::ffi::c_void"] if one.reset else []
    lines = "".join(f"        {argument},\n" for argument in arguments)
    functions = [f"    fn {one.function}(\n{lines}    ) -> i32;\n"]
    functions += [f"    fn {one.reset}(kept: *mut core::ffi::c_void) -> i32;\n"] if one.reset else []
    return (
        f"#[repr(C)]\nstruct RawInputs {{\n{inputs}}}\n\n#[repr(C)]\nstruct RawOutputs {{\n{outputs}}}\n\n"
        f'extern "C" {{\n{"".join(functions)}}}\n'
    )


def _array(port: ModulePort) -> str:
    dtype = port.tensor.dtype
    element = _TYPES.get(dtype) or (_BITS.get(port.element_size, "u8"))
    count = port.elements if element != "u8" or port.element_size == 1 else port.tensor.size
    return f"[{element}; {count}]"


def _shape(port: ModulePort) -> str:
    shape = port.tensor.shape
    return port.tensor.dtype + ("" if shape is None else f"[{', '.join(map(str, shape))}]")


def _names(ports: Sequence[ModulePort]) -> list[str]:
    return [_name(port.name) for port in ports]


def _name(name: str) -> str:
    """Return ``name`` as an identifier of Rust."""
    if name in _NEVER_RAW:
        return f"{name}_"
    return f"r#{name}" if name in _KEYWORDS else name


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
