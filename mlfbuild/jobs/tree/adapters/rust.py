"""Make a crate of Rust: the crate ``cc`` compiles the models, and safe functions call them.

Each model is a feature of the crate, on by default, and a module with the types ``Inputs``, ``Outputs`` and
``Workspace`` and the function ``run``. The crate needs no ``std``, and no ``bindgen``: mlfbuild knows the interface.

Manifest: https://doc.rust-lang.org/cargo/reference/manifest.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mlfbuild.c_analysis import CXX_SUFFIXES
from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree.adapters.interface import ModuleInterface, ModulePort
from mlfbuild.jobs.tree.adapters.package import LibraryFiles, ModelFiles, Package, cmake_packages
from mlfbuild.jobs.tree.build_text import rendered
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
# Rust does not accept r# before these.
_NEVER_RAW = frozenset({"_", "self", "super", "crate"})


def files(package: Package) -> dict[str, str]:
    """Return the files of the crate: path -> text.

    Raises ``UnsupportedModelError`` for libraries that are CMake packages.
    """
    # Cargo cannot find a target of CMake, and `cc` has only files to compile.
    for place in cmake_packages(package):
        reason = "is a CMake package, which a crate cannot use"
        hint = "name its sources in the project file, or remove --for rust"
        raise UnsupportedModelError("cmake-package-in-crate", place=place, reason=reason, hint=hint)
    owners: list[ModelFiles | LibraryFiles] = [*package.models, *package.libraries]
    libraries = [entry for owner in owners for entry in _libraries(owner, package)]
    models = "".join(_model(model) for model in package.models)
    return {
        "Cargo.toml": rendered("rust/Cargo.toml", models=package.models, version=package.version, cpu=package.cpu),
        "rust/build.rs": rendered("rust/build.rs", libraries=libraries),
        "rust/lib.rs": rendered("rust/lib.rs", models=models, cpu=package.cpu),
    }


# Compilation ---------------------------------------------------------------------------------------------------------


def _libraries(owner: ModelFiles | LibraryFiles, package: Package) -> Iterator[dict[str, object]]:
    """Yield the entries of ``build.rs`` for a model or a library: one for C, and one for C++ if it has any."""
    folders, level = list(owner.include_dirs), ""
    objects: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    if isinstance(owner, ModelFiles):
        name, folder, switches = f"mlf_{owner.name}", owner.name, [owner.switch]
        folders += [*owner.private_include_dirs, *package.folders_needed_by(owner)]
        objects, level = owner.objects, owner.level.removeprefix("-O")
    else:
        name, folder = f"mlf_dep_{owner.name}", f"{DEPENDENCIES_FOLDER}/{owner.name}"
        switches, options = package.switches_of(owner), owner.options
    # A `cc::Build` compiles all its files as one language.
    for cpp in (False, True):
        sources = [path for path in owner.sources if (PurePosixPath(path).suffix in CXX_SUFFIXES) is cpp]
        linked = () if cpp else objects
        if sources or linked:
            yield {
                "name": f"{name}_cxx" if cpp else name,
                "features": [f"CARGO_FEATURE_{switch}" for switch in switches],
                "cpp": cpp,
                "files": sources,
                "objects": linked,
                "include_dirs": folders,
                "options": options,
                "level": level,
                "folder": folder,
            }


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
    inputs, outputs = ([_port(port, ports) for port in ports] for ports in (one.inputs, one.outputs))
    structs = [("Inputs", "&'a", inputs), ("Outputs", "&'a mut", outputs)]
    return rendered("rust/module.rs", one=one, inputs=inputs, outputs=outputs, structs=structs)


def _port(port: ModulePort, ports: Sequence[ModulePort]) -> dict[str, object]:
    word = macro_words(each.name for each in ports)[port.name]
    return {
        "name": _name(port.name),
        "shape": _shape(port),
        "array": _array(port),
        "constants": tuple(_quantization(word, port)),
    }


def _quantization(word: str, port: ModulePort) -> Iterator[str]:
    import numpy as np  # only crates need it here

    if port.tensor.scale is not None:
        # The shortest decimal that is this float32; that of a Python float would have digits that f32 cannot hold.
        yield f"pub const {word}_SCALE: f32 = {np.float32(port.tensor.scale)!s};"
    if port.tensor.zero_point is not None:
        yield f"pub const {word}_ZERO_POINT: i32 = {port.tensor.zero_point};"


def _array(port: ModulePort) -> str:
    dtype = port.tensor.dtype
    # Types without an equivalent become unsigned integers of the same size, so that the array has the right alignment.
    element = _TYPES.get(dtype) or (_BITS.get(port.element_size, "u8"))
    count = port.elements if element != "u8" or port.element_size == 1 else port.tensor.size
    return f"[{element}; {count}]"


def _shape(port: ModulePort) -> str:
    shape = port.tensor.shape
    return port.tensor.dtype + ("" if shape is None else f"[{', '.join(map(str, shape))}]")


def _name(name: str) -> str:
    """Return ``name`` as an identifier of Rust."""
    if name in _NEVER_RAW:
        return f"{name}_"
    return f"r#{name}" if name in _KEYWORDS else name


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
