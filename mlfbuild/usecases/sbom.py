"""Make the software bill of materials of a project from its build folder, without building anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild import __version__
from mlfbuild.archive import open_archive_with_id, source_date
from mlfbuild.core import CheckFailedError, Mistake, UsageError, counted, quoted, read_bytes, sha256
from mlfbuild.jobs import CompileJob, QuantizeStep, hash_of, is_current, pinned, quantize_action, target_jobs
from mlfbuild.library import Library, blob_file, exporter_version, read_blob
from mlfbuild.native import SourceFiles
from mlfbuild.project import Project
from mlfbuild.report import sbom


def bill_of_materials(
    project: Project,
    targets: Sequence[str] = (),
    models: Sequence[str] = (),
    build: Path | None = None,
    *,
    elfs: Sequence[Path] = (),
    name: str = "",
    version: str = "",
    supplier: str = "",
) -> sbom.Bom:
    """Return the bill of materials of the selected targets and models (by default all).

    ``build`` is the build folder, as for ``target_jobs``; ``elfs`` are images of another build, and require that one
    target is selected. ``name``, ``version`` and ``supplier`` describe the product; by default, its name is that of its
    firmware and its version that of the project file. ``notes`` of the result list what has not been built, is damaged,
    or has no licence; the bill contains what the project file declares about it.

    Raises as ``target_jobs``, ``UsageError`` if ``elfs`` are given for several targets, and ``InputFileError`` and
    ``ConflictError`` for files that cannot be read.
    """
    project = pinned(project)
    jobs = target_jobs(project, targets, models, build)
    if elfs and len(jobs) > 1:
        names = ", ".join(job.name for job in jobs)
        raise UsageError(
            "target-not-chosen",
            place=elfs[0],
            reason=f"the image is for one target, and the project has {names}",
            hint="choose its target with --target",
        )
    name, version = name or "+".join(project.firmware or project.models), version or project.version
    product = sbom.Component("project", sbom.Kind.PROJECT, name, version, supplier=supplier)
    bill = sbom.Bill(product, source_date())
    tool = bill.add(sbom.mlfbuild_tool(__version__))
    chosen = dict.fromkeys(job.model for target in jobs for job in target.models)
    steps = {job.model: job.quantize for target in jobs for job in target.models}
    found = {model: _add_model(bill, project, model, steps[model]) for model in chosen}
    for target in jobs:
        codes = [code for job in target.models if (code := _add_code(bill, job, found[job.model], tool)) is not None]
        sbom.add_dependencies(bill, project, target, codes)
        sbom.add_board(bill, target)
        # Images of another build belong to the only target that is selected.
        images = sbom.images_of(project, target, elfs if target is jobs[0] else (), build)
        sbom.add_images(bill, images, codes)
    # If any code is missing, the libraries that it requires are unknown, so all declared ones are listed.
    if any(f"code/{job.target}/{job.model}" not in bill for target in jobs for job in target.models):
        sbom.add_declared(bill, project)
    for one in bill.components:
        _check_license(bill, project, one)
    return bill.done()


def check_complete(bom: sbom.Bom) -> None:
    """Raise ``CheckFailedError`` if ``bom`` has notes, which list what is missing in it.

    For ``--strict``: the bill has been written by then, so that it can be read although the command fails.
    """
    if bom.notes:
        raise CheckFailedError(
            "bill-incomplete",
            place="sbom",
            reason=f"the bill is incomplete in {counted(len(bom.notes), 'place')}",
            hint="see the messages above",
        )


# Models --------------------------------------------------------------------------------------------------------------


def _add_model(bill: sbom.Bill, project: Project, name: str, step: QuantizeStep | None) -> sbom.Component:
    spec = project.models[name]
    weights = {name: sha256(read_bytes(path, "weights")) for name, path in SourceFiles(spec.source).weights.items()}
    model = sbom.model_component(spec, read_bytes(spec.source, "model"), weights)
    if step is not None:
        made = quantize_action(step).inputs
        known = {"calibration": made["calibration"], "quantised with": made["engine"], "quantised": hash_of(step.made)}
        model = replace(model, properties={**model.properties, **known})
    bill.add(model)
    return model


def _add_code(bill: sbom.Bill, job: CompileJob, model: sbom.Component, tool: str) -> sbom.Code | None:
    """Add the archive and the code of a model for a target, with the libraries in it; ``None`` if it is not built."""
    tree = sbom.read_tree(job.tree)
    if tree is None or not job.archive.is_file():
        bill.note(f"{job.title}: has not been built, so its code is not in the bill; {sbom.BUILD}")
        return None
    for damage in tree.damage:
        bill.note(f"{damage}; {sbom.REPAIR}")
    library, digest = open_archive_with_id(job.archive)
    # A bill describes what is there, so it is made anyway and the note says that it is not the bill of the present
    # files.
    if _is_stale(job, model, library) or tree.archive != digest:
        reason = "was built from another model file, with other settings, or by another mlfbuild"
        bill.note(f"{job.title}: {reason}; {sbom.BUILD}")
    archive = bill.add(sbom.archive_component(job.target, job.model, job.archive, digest))
    native = all(module.model_id for module in library.modules)
    cpu = job.request.cpu.name
    code = bill.add(sbom.code_component(job.target, cpu, model, job.compiler, tree.code, native=native))
    bill.relate(archive, sbom.How.GENERATED_FROM, model.ref)
    bill.relate(code, sbom.How.GENERATED_FROM, archive)
    bill.relate(code, sbom.How.GENERATED_FROM, model.ref)
    bill.relate(code, sbom.How.MADE_BY, tool)
    for module in library.modules:
        if (data := blob_file(module, "bin")) is not None:
            blob = bill.add(sbom.parameters_component(job.target, model, read_blob(data, job.title)))
            bill.relate(blob, sbom.How.GENERATED_FROM, model.ref)
            bill.relate(code, sbom.How.CONTAINS, blob)
    _add_own_libraries(bill, code, tree, library)
    return sbom.Code(code, job, library, digest)


def _add_own_libraries(bill: sbom.Bill, code: str, tree: sbom.TreeContents, library: Library) -> None:
    """Add the kernels and libraries that the archive includes, and the TVM version that exported it."""
    for folder, headers in tree.kernels.items():
        bill.relate(code, sbom.How.DEPENDS_ON, bill.add(sbom.kernels_component(folder, headers, __version__)))
    if tree.runtime:
        bill.relate(code, sbom.How.DEPENDS_ON, bill.add(sbom.runtime_component(tree.runtime, __version__)))
    exporters = {version for module in library.modules if (version := exporter_version(module))}
    for version in sorted(exporters):
        bill.relate(code, sbom.How.MADE_BY, bill.add(sbom.tvm_tool(version)))
    for compiler in sorted({module.npu.compiler for module in library.modules if module.npu is not None}):
        bill.relate(code, sbom.How.MADE_BY, bill.add(sbom.vela_tool(compiler)))
    if tree.bundled:
        # The files of TVM in the tree are one set. If the modules come from several releases, which one they belong to
        # is not recorded, and a wrong version would match the wrong vulnerabilities.
        version = min(exporters) if len(exporters) == 1 else ""
        bill.relate(code, sbom.How.DEPENDS_ON, bill.add(sbom.tvm_runtime_component(tree.bundled, version)))


def _is_stale(job: CompileJob, model: sbom.Component, library: Library) -> bool:
    """Return whether the archive was made from other inputs than the current ones; inputs of programs are ignored."""
    if job.request.program is None:
        return not is_current(job)
    # Whether a program would write the same again is known only by running it, and a bill builds nothing. What archives
    # record about their source is compared.
    # Empty for code that records no source, of which nothing can be said.
    sources = {module.model_id or module.source_sha256 for module in library.modules} - {""}
    return bool(sources - {model.sha256 if job.quantize is None else hash_of(job.quantize.made)})


# Licences ------------------------------------------------------------------------------------------------------------


def _check_license(bill: sbom.Bill, project: Project, one: sbom.Component) -> None:
    """Note an unknown licence of a model, a requirement, or kernels of another version."""
    section, _, name = one.ref.partition("/")
    where = {"model": ("models", name), "dependency": ("dependencies", name)}.get(section)
    if where is not None and name in (project.models if section == "model" else project.dependencies):
        mistake = None
        if not one.license:
            hint = "add `license:` with an SPDX expression such as Apache-2.0 or LicenseRef-Proprietary"
            mistake = Mistake("unknown-license", reason="its licence is unknown", hint=hint)
        elif sbom.spdx_expression(one.license) is None:
            reason = f"its file has the licence {quoted(one.license)}, which is not an SPDX expression"
            mistake = Mistake("invalid-license", reason=reason, hint="add `license:` with the SPDX expression")
        for problem in project.problems([(where, mistake)] if mistake else []):
            bill.note(str(problem))
    elif one.properties.get("provided-by") == "archive" and not one.license:
        bill.note(f"{name}: an archive includes it without a licence; bundle it again with `license:`")
    elif section == "kernels" and not one.license:
        bill.note(
            f"{one.ref}: these kernels are of another mlfbuild version, so their licence is unknown; {sbom.BUILD}"
        )
