"""The command ``mlfbuild`` and its verbs.

The command is a thin layer: a verb parses its options, calls one function of ``mlfbuild.usecases``, and prints the
result. Whatever could serve SCons, CMake or pytest belongs into the use case.

Data: ``SECTIONS`` has the short help of each verb by section; ``VERBS`` are their names in this order; ``MODULES`` are
the modules with several verbs.
``SharedOptions`` (``options``) has the values of the options that many verbs share, and which of them were given.

Rules
  1. Verb ``run-firmware`` is the function ``run_firmware`` with ``@verb(...)``, which names the shared options that
     apply to it. It is in the module of its name, or in one of ``MODULES`` with verbs that are read together. Its work
     is in ``usecases/run_firmware.py``, its tests in ``tests/cli``. A test compares the three lists with ``VERBS``.
  2. A verb's module is imported when that verb runs or prints its help, and it imports rooms inside its function:
     ``mlfbuild --help`` and shell completion import none of them and take a tenth of a second, not one.
  3. Shared options may be before or after the verb. Before it, all of them are accepted, and a verb refuses those that
     do not apply: ignoring ``--frozen`` would be worse than refusing it.
  4. Results go to stdout, diagnostics and progress to stderr. With ``--format json``, both are for programs.
  5. Errors are exceptions. Only ``output.invocation`` turns them into messages and exit codes, so that no verb has its
     own idea of them, and a full disk or a closed pipe is handled once.

For example, ``mlfbuild -C fw verify --target m55``: the group stores ``-C`` (it changes the folder at once, so that
completion of later words works), finds ``verify`` in ``VERBS`` and imports ``mlfbuild.cli.verify``. ``Verb.invoke``
checks that ``--target`` is one of its options and calls its function with ``SharedOptions``. If an output is wrong, the
use case returns it, the verb prints it and raises ``CheckFailedError``, and the exit status is 1.

A new verb needs a row in ``SECTIONS``, its two functions and the test; ``make generate`` writes the reference page.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild import __version__
from mlfbuild.cli.options import Verb, shared_by_all

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FIRST = ("init", "add", "check", "build", "verify", "run", "report", "profile", "update", "doctor")
"""The verbs on the first screen, in the order in which a new user needs them."""
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Project": {
        "init": "Create a firmware project around a model.",
        "add": "Add a model to the project file.",
        "check": "Check the project file and list every mistake.",
        "plan": "List every file that a build reads and writes.",
        "fetch": "Fetch repositories and archives of required libraries.",
        "lock": "Write the hashes of all inputs to mlfbuild.lock.",
        "update": "Replace the file of MODEL by FILE, a newer version.",
        "parameters": "Write the values of NEW as a blob for firmware in the field.",
    },
    "Building": {
        "build": "Compile and unpack every model, then build every firmware.",
        "watch": "Build again whenever the project file or a model changes.",
        "why": "Say why models and images were built, and what the next build makes.",
        "compile": "Compile MODEL into a Model Library Format archive.",
        "quantize": "Quantise the float network MODEL with the tool of its format.",
        "generate": "Compile and unpack one model for another build system.",
        "project-api": "Write the server through which TVM drives firmware.",
    },
    "Running and measuring": {
        "verify": "Run every model that has vectors and compare all outputs.",
        "evaluate": "Measure every model that has the key evaluate on its test set.",
        "explore": "Try settings of MODEL, and show what each of them costs.",
        "vectors": "Compute the vectors of MODEL with another implementation.",
        "run": "Run a network of ARCHIVE, here or on an emulated board.",
        "flash": "Write a firmware to the device of its target.",
        "run-firmware": "Run a firmware on the device of its target, or on its board.",
        "profile": "Count the instructions of each operator, and model or measure its cycles.",
        "calibrate": "Measure the wait states of a device's memories.",
    },
    "Images": {
        "report": "Build, then report the flash and RAM that each model uses.",
        "fleet": "Collect the reports of many images and commits in one table.",
        "sbom": "Write a software bill of materials.",
        "provenance": "Record how the image ELF was built.",
        "bundle": "Pack the data with which another machine verifies an image.",
        "sign": "Sign files with a key of ssh-keygen.",
        "verify-signature": "Check that allowed signers have signed files.",
        "params": "Write the constants of the image ELF to a file.",
        "clashes": "Fail if two linked models share a global symbol.",
    },
    "Archives, also as `mlfbuild archive VERB`": {
        "inspect": "Show the modules, interface, memory and files of ARCHIVE.",
        "show": "Print the program of ARCHIVE, and the C function of each operator.",
        "validate": "Check ARCHIVE against the rules of the format.",
        "convert": "Write ARCHIVE in another version of the format.",
        "merge": "Write several ARCHIVES as one.",
        "split": "Write each module of ARCHIVE as an archive.",
        "compare": "Compare two archives by meaning.",
        "unpack": "Unpack ARCHIVE into a folder that a CMake build includes.",
    },
    "About the tool": {
        "doctor": "Show which tools are installed and which are missing.",
        "boards": "List the processor cores, boards and microcontrollers by name.",
        "cache": "Show, empty or check the local cache of results.",
        "schema": "Print the JSON Schema of the project file.",
        "cmake-dir": "Print the folder of the CMake package and toolchain files.",
        "completion": "Print the script that completes commands in a shell.",
    },
}
VERBS = tuple(name for verbs in SECTIONS.values() for name in verbs)
MODULES: Mapping[str, tuple[str, ...]] = {
    "archives": ("inspect", "validate", "convert", "merge", "split", "compare", "unpack"),
    "devices": ("flash", "run-firmware", "calibrate"),
    "images": ("params", "clashes"),
    "signatures": ("sign", "verify-signature"),
    "tool": ("boards", "schema", "cmake-dir", "completion"),
}
"""Modules with several verbs; every other verb is in the module of its name."""
_HELP = {name: text for verbs in SECTIONS.values() for name, text in verbs.items()}
_ARCHIVE = next(tuple(verbs) for title, verbs in SECTIONS.items() if title.startswith("Archives"))
OF_WORKSPACES = {"build", "check", "evaluate", "fetch", "lock", "profile", "report", "verify", "why"}
"""The verbs that run for each project of a workspace; for others, one of its projects is named with -f."""
_OTHER_TOOLS = {
    "test": "verify",
    "size": "report",
    "size-report": "report",
    "new": "init",
    "create": "init",
    "list": "boards",
    "targets": "boards",
    "devices": "boards",
    "upload": "flash",
    "exec": "run",
    "lint": "check",
    "diff": "compare",
    "benchmark": "profile",
    "accuracy": "evaluate",
    "bench": "profile",
    "insert": "add",
    "upgrade": "update",
    "install": "fetch",
    "quantise": "quantize",
}
"""Verbs of other tools (cargo, west, pio, idf.py) -> what does the same here."""
_MODELS = {".tflite", ".onnx"}
_ARCHIVES = {".tar", ".elf", ".axf"}


def verb_called(name: str) -> Verb:
    """Return the verb ``name``, which is one of ``VERBS``, from its module.

    This imports the module, and with it click's description of the options, but none of the rooms that the verb uses
    when it runs.
    """
    module = next((module for module, verbs in MODULES.items() if name in verbs), name.replace("-", "_"))
    found = vars(importlib.import_module(f"mlfbuild.cli.{module}")).values()
    verb = next(value for value in found if isinstance(value, Verb) and value.name == name)
    if name in OF_WORKSPACES:
        from mlfbuild.cli.output.workspaces import run_for_each_project  # imports what prints results

        run_for_each_project(verb)
    return verb


class _Group(click.Group):
    """Lists the first verbs or all in sections, imports one when it is needed, and suggests one for a wrong word."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        return verb_called(name) if name in VERBS else None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first screen, or with `--all` everything."""
        if ctx.meta.get(_ALL):
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("Put machine-learning models into microcontroller firmware.")
        with formatter.section("Commands"):
            formatter.write_dl([(name, _HELP[name]) for name in FIRST])
        formatter.write_paragraph()
        formatter.write_text("`mlfbuild help --all` lists all commands, options and exit codes, and")
        formatter.write_text("`mlfbuild COMMAND --help` describes one.")

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(verbs.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs, with their help from ``SECTIONS``, or the options before the verb."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem  # only shells need it

        about = [item for verbs in SECTIONS.values() for item in verbs.items()]
        return [CompletionItem(name, help=text) for name, text in about if name.startswith(incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Here rather than as verbs: they are other spellings, and have no options and no page of their own.
        if args[0] == "help":
            args = _help_of(ctx, args[1:])
        elif args[0] == "archive":
            args = _of_archives(ctx, args[1:])
        # Click's own message knows only similar words; options are left to click.
        if args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(_no_such_command(args[0]))
        return super().resolve_command(ctx, args)


_ALL = "mlfbuild.all"
"""Key in a context's ``meta``: the whole help is wanted."""


def _help_of(ctx: click.Context, words: list[str]) -> list[str]:
    """Return the arguments that ``help VERB`` stands for; print the help of the command itself without a verb."""
    verbs = [word for word in words if word in VERBS]
    if len(words) == len(verbs) == 1:
        return [verbs[0], "--help"]
    if words not in ([], ["--all"], ["-a"]):
        ctx.fail(_no_such_command(words[0]) if len(words) == 1 else "Use `help`, `help --all` or `help COMMAND`.")
    ctx.meta[_ALL] = bool(words)
    click.echo(ctx.get_help())
    # The end with status 0, as after ``--help``.
    raise click.exceptions.Exit


def _of_archives(ctx: click.Context, words: list[str]) -> list[str]:
    if words and words[0] in _ARCHIVE:
        return words
    if words and words[0] not in {"-h", "--help"}:
        ctx.fail(f"No such command 'archive {words[0]}'; choose one of {', '.join(_ARCHIVE)}.")
    formatter = ctx.make_formatter()
    formatter.write_usage("mlfbuild archive", "COMMAND [ARGS]...")
    with formatter.section("Commands"):
        formatter.write_dl([(name, _HELP[name]) for name in _ARCHIVE])
    click.echo(formatter.getvalue().rstrip())
    raise click.exceptions.Exit


def _no_such_command(word: str) -> str:
    """Return the message about a word that is not a verb: the verb that was meant, or what to do with a file."""
    refused = f"No such command {word!r}"
    if word in _OTHER_TOOLS:
        return f"{refused} (did you mean {_OTHER_TOOLS[word]!r}?)."
    if word == "clean":
        return f"{refused}; delete the folder `build` beside mlfbuild.yml, which has all results."
    suffix = Path(word).suffix.lower()
    if suffix in _MODELS:
        return f"{refused}; for a model, use `mlfbuild compile {word}` or `mlfbuild init NAME --model {word}`."
    if suffix in _ARCHIVES:
        verb = "run" if suffix == ".tar" else "report --elf"
        return f"{refused}; for such a file, use `mlfbuild {verb} {word}`."
    near = difflib.get_close_matches(word, VERBS, n=1)
    return refused + (f" (did you mean {near[0]!r}?)." if near else "; `mlfbuild help --all` lists all.")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mlfbuild", message="%(prog)s %(version)s")
@shared_by_all
def app() -> None:
    """Put machine-learning models into microcontroller firmware.

    The project file mlfbuild.yml lists models, targets and firmware. For help with a command, run
    `mlfbuild COMMAND --help`.

    Exit status: 0 success, 1 a check failed, 2 usage or project file, 3 missing tool, 4 unsupported model, 5 bad input
    file, 6 would overwrite a file, 7 an external program failed, 8 disk or permission, 130 interrupted.
    """
