"""The arguments of ``tvmc compile``, by version, and TVM's errors."""

from __future__ import annotations

import argparse
import re

CONFIGS = {
    "tir.disable_vectorize", "tir.disable_storage_rewrite", "tir.usmp.enable", "tir.usmp.algorithm",
    "relay.backend.use_auto_scheduler",
}  # fmt: skip
_ALWAYS = (
    "--cross-compiler", "--cross-compiler-options", "--desired-layout", "--dump-code", "--model-format",
    "--tuning-records", "--input-shapes", "--disabled-pass",
)  # fmt: skip
_SINCE = {
    (0, 9): ("--module-name", "--workspace-pools"),
    (0, 13): ("--dump-offloads", "--mixed-precision-ops", "--desired-layout-ops"),
    (0, 17): ("--print-ir-before", "--print-ir-after"),
}
_OLD_ATTRIBUTES = {
    "system-lib": int, "link-params": int, "runtime": str, "executor": str, "workspace-byte-alignment": int,
    "unpacked-api": int, "interface-api": str,
}  # fmt: skip
_C = {"mcpu": str, "march": str}
EXECUTORS = {
    "aot": {
        "link-params": int, "unpacked-api": int, "interface-api": str, "workspace-byte-alignment": int,
        "constant-byte-alignment": int,
    },
    "graph": {"link-params": int},
}  # fmt: skip
RUNTIMES = {"crt": {"system-lib": int}, "cpp": {"system-lib": int}}


class TVMCError(Exception):
    """An error that tvmc prints after ``Error:``, with exit status 4."""


def targets(version: tuple[int, int]) -> dict[str, dict[str, type]]:
    """Return the attributes of each target."""
    c = _C | (_OLD_ATTRIBUTES if version < (0, 10) else {}) | {"workspace-byte-alignment": int}
    cmsis = {} if version < (0, 9) else {"mcpu": str, "mattr": str}
    return {"c": c, "llvm": {"mcpu": str, "mattr": str, "mtriple": str}, "cmsis-nn": cmsis}


def parser(version: tuple[int, int]) -> argparse.ArgumentParser:
    """Return the parser of ``tvmc compile``; an unknown argument is an error with exit status 2."""
    made = argparse.ArgumentParser(prog="tvmc compile", allow_abbrev=False)
    made.add_argument("-o", "--output", default="module.tar")
    made.add_argument("-f", "--output-format", choices=["so", "mlf"], default="so")
    made.add_argument("--pass-config", action="append", default=[])
    made.add_argument("-v", "--verbose", action="count", default=0)
    made.add_argument("--target", required=True)
    made.add_argument("FILE")
    if version >= (0, 9):
        made.add_argument("-O", "--opt-level", type=int, default=3, choices=range(4))
        made.add_argument("--executor", default="graph")
        made.add_argument("--runtime", default="cpp")
        for kind, registry in (("executor", EXECUTORS), ("runtime", RUNTIMES)):
            for name, options in registry.items():
                for option, converted in options.items():
                    made.add_argument(f"--{kind}-{name}-{option}", type=converted)
    for name in (*_ALWAYS, *(name for since, names in _SINCE.items() if version >= since for name in names)):
        made.add_argument(name)
    for target, attributes in targets(version).items():
        for attribute, converted in attributes.items():
            made.add_argument(f"--target-{target}-{attribute}", type=converted)
    return made


def parse(version: tuple[int, int], words: list[str]) -> dict[str, object]:
    """Return the arguments ``words`` by name without dashes; raises ``TVMCError`` for the errors of tvmc."""
    given = vars(parser(version).parse_args(words))
    names = [part.split()[0] for part in re.split(r",\s*", str(given["target"]))]
    if names[-1] not in {"c", "llvm"}:
        raise TVMCError("The last target needs to be a TVM target. Choices: c, llvm")
    for key, value in given.items():
        for target in targets(version):
            if value is not None and key.startswith(f"target_{target.replace('-', '_')}_") and target not in names:
                raise TVMCError(f"Passed --{key.replace('_', '-')} but did not specify {target} target")
    for config in given["pass_config"]:
        name, equals, _ = config.partition("=")
        if not equals or name not in CONFIGS:
            raise TVMCError(f"Configuration '{name}' is not defined in TVM.")
    if version >= (0, 9):
        _check_registries(given)
    if given["output_format"] != "mlf":
        raise TVMCError("the stand-in writes Model Library Format alone")
    return {**given, "targets": names}


def _check_registries(given: dict[str, object]) -> None:
    for kind, registry in (("executor", EXECUTORS), ("runtime", RUNTIMES)):
        chosen = given[kind]
        if chosen not in registry:
            raise TVMCError(f'{kind.title()} "{chosen}" is not defined')
        for name in registry:
            set_ = [key for key, value in given.items() if key.startswith(f"{kind}_{name}_") and value is not None]
            if set_ and name != chosen:
                raise TVMCError(f"Passed --{set_[0].replace('_', '-')} but did not specify {name} {kind}")
    c_interface = given["executor"] == "aot" and given["executor_aot_interface_api"] == "c"
    if c_interface and given["runtime"] == "crt" and not given["executor_aot_unpacked_api"]:
        raise TVMCError('Either need interface_api == "packed" (got: c) or unpacked-api == true (got: false)')
