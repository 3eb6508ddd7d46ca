"""``mlfbuild compile``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from mlfbuild.cli.options import FILE, PLACE, SharedOptions, complete_cpu, setting, verb
from mlfbuild.cli.output.plain import duration
from mlfbuild.cli.output.printing import note, show, show_json, show_notes
from mlfbuild.cli.output.progress import working
from mlfbuild.core import shown
from mlfbuild.library.keys import fact_name_problem, fact_problem


@verb("format")
@click.argument("model", type=FILE)
@click.option(
    "--cpu",
    required=True,
    metavar="CPU",
    help="Processor core, such as cortex-m4 or host.",
    shell_complete=complete_cpu,
)
@click.option("-O", "settings", multiple=True, metavar="KEY=VALUE", help="Compiler option; repeatable.")
@click.option(
    "-o",
    "output",
    type=click.Path(),
    required=True,
    metavar="OUT",
    help="Archive OUT.tar, folder OUT/ or C file OUT.c to write.",
)
@click.option("--name", default="", metavar="NAME", help="Name of the model in C, default from the file.")
@click.option("--compiler", default="", metavar="NAME", help="native, archive or tvm; default from the file.")
@click.option("--executor", default="", metavar="NAME", help="aot or graph; default aot or the archive's.")
@click.option("--python", default="", metavar="PROGRAM", help="With --compiler tvm: Python that has TVM.")
@click.option("--extension", "facts", multiple=True, metavar="NAME=VALUE", help="Fact to record; repeatable.")
@PLACE
def compile_(
    options: SharedOptions,
    model: Path,
    cpu: str,
    settings: tuple[str, ...],
    output: str,
    name: str,
    compiler: str,
    executor: str,
    python: str,
    facts: tuple[str, ...],
    places: tuple[str, ...],
) -> None:
    """Compile MODEL into a Model Library Format archive.

    MODEL is a .tflite or .onnx file, or an archive. The name of the output decides: OUT.tar is an archive, OUT/ the
    unpacked tree, which a CMake, SCons or Make build includes, and OUT.c one C file, with its header beside it.
    """
    from mlfbuild.usecases import compile_file

    started = time.monotonic()
    with working(options, f"compiling {model}"):
        compiled = compile_file(
            model,
            output,
            cpu,
            name=name,
            compiler=compiler,
            executor=executor,
            python=python,
            options=dict(setting(text) for text in settings),
            places=places,
            extensions=_facts(facts),
        )
    made, sources = compiled.made, compiled.sources
    if options.json:
        written = {"archive": compiled.archive, "directory": compiled.tree, "sources": list(sources) or None}
        show_json({"model": compiled.model, **{key: at for key, at in written.items() if at}, **vars(made)})
    elif not options.quiet:
        note(f"compile {compiled.model} for {cpu}: compiled ({duration(time.monotonic() - started)})")
        names = " and ".join(str(source) for source in sources) or output
        show(f"{names}: model {compiled.model} for {cpu}, {made.size:,} bytes")
        bound = made.workspace_bound
        peak = "" if bound is None else f" (peak use {bound:,}{', so no plan is smaller' * (bound == made.workspace)})"
        show(f"  constants {made.constants:,} bytes, workspace {made.workspace:,} bytes{peak}")
    show_notes(options, model.name, made.notes)


def _facts(texts: tuple[str, ...]) -> dict[str, str | int | float | bool]:
    facts = dict(setting(text, "--extension") for text in texts)
    for name, value in facts.items():
        problem = fact_name_problem(name) or fact_problem(value)
        if problem is not None:
            raise problem.error(f"--extension {shown(name)}")
    return facts
