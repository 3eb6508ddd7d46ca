"""``mlfbuild generate``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.build import model_json
from mlfbuild.cli.options import BUILD_DIR, FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import note_unless_quiet, show, show_json


@verb("file", "one_target", "project_model", "frozen", "offline", "format")
@BUILD_DIR
@click.option("--stamp", type=FILE, metavar="FILE", help="Write this empty file when done.")
@click.option("--depfile", type=FILE, metavar="FILE", help="Write a rule of Make for the stamp.")
@click.option(
    "--depends", type=click.Choice(["model", "tree"]), default="model", help="What the rule lists; default model."
)
@click.option("--tree-stamp", type=FILE, metavar="FILE", help="Stamp of the step that checks the tree.")
def generate(
    options: SharedOptions,
    build_dir: Path | None,
    stamp: Path | None,
    depfile: Path | None,
    depends: str,
    tree_stamp: Path | None,
) -> None:
    """Compile and unpack one model for another build system.

    mlfbuild's CMake package runs this step. Choose the model with --target and --model. Files that are correct keep
    their time.

    The rule in --depfile lists the files that the archive is made from, or with `--depends tree` the files of the
    unpacked tree. With --tree-stamp, also write FILE.d, the rule of a later step that checks the tree, and FILE.fresh,
    which says that the tree is correct.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import chosen_model, generate_model

    project = load(options.file)
    job = chosen_model(project, options.target, options.model, build_dir, frozen=options.frozen)
    result = generate_model(job, stamp, depfile, depends, tree_stamp, note_unless_quiet(options))
    if options.json:
        show_json(model_json(result))
    elif options.verbose:
        show(f"{result.job.title}: {result.job.tree}")
