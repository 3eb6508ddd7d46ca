"""``MlfParams`` writes constants for external flash; ``models.place`` uses the memory regions of a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from SCons.Builder import Builder
from SCons.Util import CLVar

from mlfbuild.core import UsageError
from mlfbuild.jobs import TargetJob
from mlfbuild.scons.actions import action, show


def params_builder() -> Any:
    """Return ``MlfParams``: ``env.MlfParams("app_params.bin", app)``.

    Writes the bytes of the image's section ``MLFSECTION``, for the programmer of external flash.
    """
    return Builder(action=action(_write, "$MLFPARAMSCOMSTR"), suffix=".bin", single_source=True, emitter=_emitter)


def _emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    env.Depends(target, env.Value(env.subst("$MLFSECTION")))
    env.Precious(target)  # written only if its bytes changed
    return target, source


def _write(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.usecases import write_params

    section = env.subst("$MLFSECTION")
    written = write_params(Path(source[0].get_abspath()), section, Path(target[0].get_abspath()))
    show(f"{target[0]}: {written.size:,} bytes of {section} for address {written.address:#010x}")


def place(env: Any, target: TargetJob) -> None:
    """Pass the linker script of ``target`` to programs of ``env``, after their own; a second call changes nothing."""
    if not target.placed:
        raise UsageError(
            "regions-missing",
            place=f"target {target.name!r}",
            reason="the project file places no section of it in a memory region",
            hint="add regions to the target",
        )
    script = env.File(str(target.placement_script))
    flag = f"-T{script.get_abspath()}"
    # A clone of an environment already has it.
    if flag not in env.subst("$LINKFLAGS"):
        env.Append(LINKFLAGS=CLVar([flag]), PROGEMITTER=[_depends_on(script)])


def _depends_on(script: Any) -> Any:
    def emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
        env.Depends(target, script)
        return target, source

    return emitter
