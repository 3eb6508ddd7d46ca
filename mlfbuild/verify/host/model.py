"""A model on this machine: ``load`` an archive or a model file, ``run`` it with numpy arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

import mlfbuild
from mlfbuild.c_analysis import SOURCE_SUFFIXES
from mlfbuild.compilers import check_fit
from mlfbuild.core import ProcessFailedError, UnsupportedModelError, cache_folder, find_tool, make_once, run, sha256
from mlfbuild.executor import Executable, check_described, chosen_module, executable, missing_header
from mlfbuild.jobs import open_model
from mlfbuild.library import (
    MERGED_SYSTEM_LIBRARY,
    Library,
    Module,
    ResolvedLibrary,
    TensorInfo,
    TracedTensor,
    corrected_sources,
    dtype_called,
)
from mlfbuild.project import DEFAULT_LEVEL, INHERIT
from mlfbuild.requirements import bundled_libraries
from mlfbuild.targets import CPUS
from mlfbuild.verify.devices import refuse_device_code
from mlfbuild.verify.host.isolated import Array, InProcess, Machine, RunStoppedError
from mlfbuild.verify.host.shim import print_shim
from mlfbuild.verify.host.trace import is_graph, traced_tensors

# -w: the code may come from any compiler, and its warnings help no one here. -fno-strict-aliasing: TVM's code casts
# pointers between types. -Bsymbolic: two models in a process must each call their own functions of the same name.
# --no-undefined: an unresolved symbol fails here and not at the first call.
_FLAGS = ("-shared", "-fPIC", "-w", "-fno-strict-aliasing", "-Wl,-Bsymbolic", "-Wl,--no-undefined")
# Archives are untrusted: one that is made to keep the compiler busy must end.
_COMPILE_SECONDS = 600.0


def shared_object(module: Module, libraries: Sequence[ResolvedLibrary] = (), optimize: str = DEFAULT_LEVEL) -> Path:
    """Return the shared object of ``module`` and the ``libraries`` that it requires; compile it if it is not cached.

    ``optimize`` is the level of its code, one of ``LEVELS``; there is no build whose level it could inherit.
    Raises as ``executable``, ``UsageError`` for objects that were compiled for another machine,
    ``UnsupportedModelError`` for a module that cannot be called, ``ToolNotFoundError`` without a C compiler, and
    ``ProcessFailedError`` if the code does not compile or has unresolved symbols.
    """
    build = _executable(module)
    files = {f"codegen/{file.path}": file.data for file in module.codegen}
    files |= {path: bytes(content) for path, content in build.generated.items()}
    files["host_shim.c"] = print_shim(module).encode()
    compiler = find_tool("gcc", os.environ.get("CC") or None)
    # Without the options of libraries, which are for targets.
    for source in libraries:
        folder = f"dependencies/{source.name}"
        files |= {f"{folder}/{path}": bytes(content) for path, content in source.files.items()}
        build = replace(
            build,
            files=(*build.files, *(f"{folder}/{path}" for path in source.sources)),
            private_include_dirs=(*(f"{folder}/{path}" for path in source.include_dirs), *build.private_include_dirs),
        )
    flags = (*_FLAGS, f"-{DEFAULT_LEVEL if optimize == INHERIT else optimize}")
    path = cache_folder("host") / f"{_key(files, build, compiler, flags)}.so"
    return make_once(path, lambda folder: _compiled(module, files, build, [str(compiler), *flags], folder))


def _executable(module: Module) -> Executable:
    check_described(module)
    refuse_device_code(module)
    check_fit(Library((module,)), CPUS["host"], module.name)
    found = executable(module)
    if found is not None:
        # The table of merged modules refers to functions of modules that are not compiled here; it is not used.
        files = tuple(path for path in found.files if PurePosixPath(path).name != MERGED_SYSTEM_LIBRARY)
        return replace(found, files=files)
    sources = tuple(f"codegen/{file.path}" for file in module.codegen if file.path.suffix in SOURCE_SUFFIXES)
    if not sources or not module.model_id:
        raise UnsupportedModelError(
            "module-without-code",
            place=module.name,
            reason="the archive has no C code of the module that can be called",
            hint="compile the model to C",
        )
    return Executable(sources, ("codegen/host/include",), ())


def _key(files: dict[str, bytes], build: Executable, compiler: Path, flags: Sequence[str]) -> str:
    parts = [mlfbuild.__version__, run([compiler, "--version"]), *flags, *build.files]
    parts += [f"{path} {sha256(data)}" for path, data in sorted(files.items())]
    return sha256("\n".join(parts).encode())


def _compiled(module: Module, files: dict[str, bytes], build: Executable, command: Sequence[str], folder: Path) -> Path:
    for relative, data in files.items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        (folder / relative).write_bytes(data)
    includes = [f"-I{folder / each}" for each in (*build.include_dirs, *build.private_include_dirs)]
    sources = [folder / source for source in (*build.files, "host_shim.c")]
    made = folder / "module.so"
    try:
        macros = ["-DMLF_TRACE"] if is_graph(module) else []
        # Compilers for Arm declare these types with their intrinsics, and sources of CMSIS-NN rely on that.
        types = ["-include", "stdint.h"] if any(path.startswith("dependencies/") for path in files) else []
        run([*command, *macros, *types, *includes, *sources, "-o", made, "-lm"], timeout=_COMPILE_SECONDS)
    except ProcessFailedError as error:
        failed = ProcessFailedError(
            "module-not-built",
            error.output,
            place=module.name,
            reason="its C code does not compile on this machine",
            hint="see the output of the compiler below",
        )
        raise missing_header(module, error.output) or failed from None
    return made


_MOST_TRACED = 1 << 30
"""Maximum bytes of all tensors of a traced run: they are in memory together, and archives are untrusted."""


class Model:
    """A network or an operator of an archive, ready to run on this machine."""

    def __init__(self, module: Module, machine: Machine) -> None:
        self._module = module
        self._machine = machine

    @property
    def name(self) -> str:
        """The module's name."""
        return self._module.name

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs in call order: name, dtype, shape (``None`` if the archive does not record it), bytes."""
        return self._module.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs in call order, as ``inputs``."""
        return self._module.outputs

    @property
    def layers(self) -> int:
        """The layers that add to the tolerance of floats; 0 if unknown."""
        return self._module.network.layers if self._module.network else 0

    def bound(self, output: int) -> int:
        """Return the greatest magnitude of the output with this index; 0 if it is unknown.

        Tolerances of floats are relative to the largest expected value, and to this one if it is larger: see
        ``first_difference``. ``output`` counts from 0.
        """
        return self._module.bound(output)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each source of which a corrected copy was compiled."""
        return corrected_sources(self._module)

    @cached_property
    def traced(self) -> tuple[TracedTensor, ...]:
        """The tensors that ``trace`` returns, in order of execution; empty if the network exposes none."""
        return traced_tensors(self._module)

    @property
    def how_to_trace(self) -> str:
        """The hint that makes a network expose intermediate tensors."""
        compiled_here = bool(self._module.model_id)
        return "compile it with -O trace=true" if compiled_here else "use an archive for the graph executor"

    @property
    def keeps_state(self) -> bool:
        """Whether it keeps state between runs."""
        return self._module.state_size > 0

    def __repr__(self) -> str:
        """Return name, inputs and outputs on one screen."""
        tensors = [("input ", tensor) for tensor in self.inputs] + [("output", tensor) for tensor in self.outputs]
        state = ["  keeps a state between runs; reset() sets it back"] if self.keeps_state else []
        return "\n".join([f"Model {self.name}", *(f"  {kind}  {tensor}" for kind, tensor in tensors), *state])

    def run(self, inputs: Mapping[str, npt.ArrayLike], *, quantize: bool = False) -> dict[str, Array]:
        """Return the outputs by name for ``inputs`` by name, each an array of the tensor's dtype and shape.

        An input may also be given by its name in the model file. With ``quantize``, inputs and outputs are real
        numbers: inputs of quantised tensors are stored as ``TensorInfo.quantized`` does, and outputs are float32.

        Raises ``ValueError`` if an input is missing, unknown, or has another dtype or shape, before any code of the
        model runs, and ``ProcessFailedError`` if the model returns an error, crashes or takes too long.
        """
        if quantize:
            known = {name: tensor for tensor in self.inputs for name in tensor.names}
            inputs = {name: known[name].quantized(each) if name in known else each for name, each in inputs.items()}
        outputs = self._named(*self._machine.run(self._in_order(inputs)))
        return (
            {tensor.name: tensor.dequantized(outputs[tensor.name]) for tensor in self.outputs} if quantize else outputs
        )

    def run_cases(self, inputs: Sequence[Array], first: int = 0) -> list[Array]:
        """Return the outputs of many cases, each an array (cases, *shape), in one call of C for all of them.

        ``inputs`` are in call order, each (cases, *shape) of the tensor's dtype. Each case begins with the initial
        state. ``first`` is the number of the first case, for messages.

        Raises ``ValueError`` for arrays that do not fit, and ``ProcessFailedError``, with the number of the case, if
        the model returns an error, crashes or takes too long.
        """
        fitting = [_checked_cases(self.name, tensor, array) for tensor, array in zip(self.inputs, inputs, strict=True)]
        try:
            status, done, outputs = self._machine.run_cases(fitting)
        except RunStoppedError as stopped:
            error = stopped.error
            reason = error.reason.removeprefix(f"{self.name}: ")
            place = f"{self.name}: case {first + stopped.case}"
            raise type(error)(error.code, error.output, place=place, reason=reason, hint=error.hint) from None
        if status != 0:
            place = f"{self.name}: case {first + done}"
            raise ProcessFailedError("run-failed", place=place, reason=f"the run function returned {status}, not 0")
        return outputs

    def trace(self, inputs: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
        """Run once and return the tensors that operators wrote, by name and in order of execution.

        The second tensor with a name is ``<name>#2``. Raises as ``run`` does, and ``UnsupportedModelError`` if the
        network exposes none: it is neither a graph nor compiled with the option ``trace``.
        """
        return self.run_traced(inputs)[1]

    def run_traced(self, inputs: Mapping[str, npt.ArrayLike]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Run once and return the results of both ``run`` and ``trace``; raises as ``trace`` does.

        The first mapping has the outputs, the second one the intermediate tensors, both by name. A network with a state
        advances by one step only.
        """
        if not self.traced:
            raise UnsupportedModelError(
                "module-not-traceable",
                place=self.name,
                reason="the network exposes no intermediate tensors",
                hint=self.how_to_trace,
            )
        size = sum(each.tensor.size for each in self.traced)
        if size > _MOST_TRACED:
            raise UnsupportedModelError(
                "trace-too-large",
                place=self.name,
                reason=f"a run writes {size:,} bytes of intermediate tensors, more than {_MOST_TRACED:,}",
            )
        status, outputs, traced = self._machine.trace(self._in_order(inputs))
        named = zip(self.traced, traced, strict=True)
        return self._named(status, outputs), {each.tensor.name: array for each, array in named}

    def _in_order(self, inputs: Mapping[str, npt.ArrayLike]) -> list[Array]:
        unknown = inputs.keys() - {name for tensor in self.inputs for name in tensor.names}
        if unknown:
            names = ", ".join(repr(tensor.name) for tensor in self.inputs)
            raise ValueError(f"{self.name}: has no input {min(unknown)!r}; its inputs are {names}")
        given = ({name: inputs[name] for name in tensor.names if name in inputs} for tensor in self.inputs)
        return [_checked(self.name, tensor, found) for tensor, found in zip(self.inputs, given, strict=True)]

    def _named(self, status: int, outputs: list[Array]) -> dict[str, Array]:
        if status != 0:
            raise ProcessFailedError("run-failed", place=self.name, reason=f"the run function returned {status}, not 0")
        return {tensor.name: array for tensor, array in zip(self.outputs, outputs, strict=True)}

    def reset(self) -> None:
        """Reset the state of a network that keeps some between runs; no effect on others.

        The state belongs to this object: two models of one archive have one each. A model that was not run yet has its
        initial state.
        """
        self._machine.reset()

    def close(self) -> None:
        """Release the resources of the model, which cannot run afterwards.

        It ends the process of an isolated model; a library in this process stays loaded. A ``with`` block does it at
        its end.
        """
        self._machine.close()

    def __enter__(self) -> Self:
        """Return the model, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the resources of the model."""
        self.close()


def load(
    archive: str | os.PathLike[str], model: str | None = None, *, isolated: bool = False, timeout: float = 60.0
) -> Model:
    """Return the network or operator called ``model`` of ``archive``, compiled for this machine.

    ``archive`` may also be a model file, whose network can be traced. ``model`` may be omitted if there is only one.

    If ``isolated``, its code runs in a separate process: a crash, or a run of more than ``timeout`` seconds, is an
    error of that run. Otherwise it runs in this process, which is faster.

    Raises as ``open_model`` does, ``UsageError`` for a name that the archive does not have,
    ``UnsupportedModelError`` if it requires a library that it does not include, and as ``build.shared_object``.
    """
    return load_library(open_model(Path(archive), trace=True), str(archive), model, isolated=isolated, timeout=timeout)


def load_library(
    library: Library,
    where: str,
    model: str | None = None,
    *,
    isolated: bool = False,
    timeout: float = 60.0,
    optimize: str = DEFAULT_LEVEL,
    libraries: Sequence[ResolvedLibrary] | None = None,
) -> Model:
    """Return a network of ``library`` as ``load`` does; ``where`` is its place in messages.

    Its code is compiled with the level ``optimize``, and with ``libraries`` instead of those that the archive bundles.

    For libraries that are in memory already: a model that was just compiled, or an archive that was read for another
    reason. Raises as ``load``, except for what concerns files.
    """
    module = chosen_module(library, model, where)
    required = bundled_libraries(library, module, where) if libraries is None else libraries
    path = shared_object(module, required, optimize)
    if not isolated:
        return Model(module, InProcess(path, module))
    from mlfbuild.verify.host.isolated import Child

    return Model(module, Child(path, module, timeout))


def _checked_cases(model: str, tensor: TensorInfo, value: Array) -> Array:
    if value.dtype != dtype_called(tensor.dtype) or value.nbytes != len(value) * tensor.size:
        wanted = f"{tensor.dtype} with {tensor.size} bytes for each case"
        raise ValueError(f"{model}: input {tensor.name!r}: is {value.dtype} of shape {value.shape}, must be {wanted}")
    return np.ascontiguousarray(value)


def _checked(model: str, tensor: TensorInfo, given: Mapping[str, npt.ArrayLike]) -> Array:
    where = f"{model}: input {tensor.name!r}"
    if len(given) != 1:
        raise ValueError(f"{where}: is {'given twice, as ' + ' and '.join(map(repr, given)) if given else 'missing'}")
    value = np.asarray(next(iter(given.values())))
    if value.dtype != dtype_called(tensor.dtype):
        raise ValueError(f"{where}: is {value.dtype}, must be {tensor.dtype}")
    fits = value.nbytes == tensor.size if tensor.shape is None else value.shape == tensor.shape
    if not fits:
        wanted = f"{tensor.size} bytes" if tensor.shape is None else f"shape {list(tensor.shape)}"
        raise ValueError(f"{where}: has shape {list(value.shape)}, must have {wanted}")
    return np.ascontiguousarray(value)
