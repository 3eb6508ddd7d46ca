"""Checks of a project's dependencies before anything is compiled."""

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.library import CMSIS_NN, CodegenFile, ExternalDependency, Library
from support.cmsis_nn import write_cmsis_nn, write_cmsis_nn_repository
from support.command import Ended, Folder
from support.libraries import native_module

ARM = "https://github.com/ARM-software/CMSIS-NN"
LIB = "lib: {path: here, sources: [a.c], include-dirs: [.]}"
NEEDS = "the code includes arm_nnfunctions.h"


def dependencies(folder: Folder, *lines: str) -> None:
    """Append the key ``dependencies`` to the project of ``folder``, on line 9."""
    project = folder.root / "mlfbuild.yml"
    project.write_text(project.read_text() + "dependencies:\n" + "".join(f"  {line}\n" for line in lines))


def archive(folder: Folder, model: str, tvm: str = "0.14.0", *declared: ExternalDependency) -> None:
    """Replace ``model`` by an archive whose code includes CMSIS-NN, and whose metadata has ``declared``."""
    code = CodegenFile(PurePosixPath(f"host/src/{model}_lib0.c"), b"#include <arm_nnfunctions.h>\n")
    crt = ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", tvm)
    module = replace(native_module(model), model_id="", codegen=(code,), external_dependencies=(crt, *declared))
    folder.write(f"models/{model}.tar", pack_archive(Library((module,))))
    project = folder.root / "mlfbuild.yml"
    vectors = ", vectors: alpha.npz" if model == "alpha" else ""
    text = project.read_text()
    project.write_text(text.replace(f"models/{model}.tflite{vectors}", f"models/{model}.tar"))


@pytest.mark.parametrize("verb", [("check",), ("build",), ("plan",)], ids=lambda verb: verb[0])
def test_missing_folders_of_dependencies_are_refused(folder: Folder, verb: tuple[str, ...]) -> None:
    dependencies(folder, "CMSIS_NN: {path: nowhere}", "file: {path: main.c}", "later: {git: nowhere.git, version: v1}")
    assert folder.mistakes(*verb) == [
        ("no-such-folder", "mlfbuild.yml:10:20: dependencies.cmsis-nn.path"),
        ("not-a-folder", "mlfbuild.yml:11:16: dependencies.file.path"),
    ]


def test_a_secret_in_an_address_is_never_shown(folder: Folder) -> None:
    dependencies(folder, 'a: {git: "https://me:s3cret@example.org/a", version: v1}', 'b: {url: "https://s3cret@b.org"}')
    ended = folder.run("check", status=2)
    assert ended.err.count("which would be committed") == 2
    assert "s3cret" not in ended.err


def test_a_provider_that_no_model_requires_is_a_warning(folder: Folder) -> None:
    dependencies(folder, "CMSIS_NN: {git: nowhere.git, version: v7.0.0}")
    warning = "mlfbuild.yml:10:3: dependencies.CMSIS_NN: no model requires it; remove it, or correct its name"
    ended = folder.run("check")
    assert (ended.status, ended.err) == (0, f"warning: {warning}\n")
    assert ended.out.startswith("mlfbuild.yml: no mistakes")
    assert folder.run("check", "--format", "json").json == {
        "file": "mlfbuild.yml", "problems": [], "warnings": [warning], "missing": [],
    }  # fmt: skip


def test_no_warning_if_requirements_are_unknown(folder: Folder) -> None:
    dependencies(folder, "cmsis-nn: {git: nowhere.git, version: v7.0.0}")
    project = folder.root / "mlfbuild.yml"
    text = project.read_text().replace("beta.tflite}", 'beta.tflite, compiler: command, command: "sh {output}"}')
    project.write_text(text)
    assert folder.run("check").err == ""


def test_requirements_are_checked_before_anything_is_built(folder: Folder) -> None:
    archive(folder, "alpha")
    ended = folder.run("check")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("dependency cmsis-nn: alpha (alpha.tar) needs CMSIS-NN v4.1.0, ") and NEEDS in ended.err
    assert f"`cmsis-nn: {{git: {ARM}, version: v4.1.0}}`" in ended.err
    dependencies(folder, f"cmsis-nn: {{git: {ARM}, version: v4.1.0}}")
    assert folder.run("check").err == "", "whether it was fetched is for builds"


def test_another_version_is_refused(folder: Folder) -> None:
    archive(folder, "alpha")
    dependencies(folder, f"cmsis-nn: {{git: {ARM}, version: v7.0.0}}")
    assert folder.mistakes("check") == [("provider-other-version", "mlfbuild.yml:10:3: dependencies.cmsis-nn")]


def test_different_required_versions_are_refused(folder: Folder) -> None:
    archive(folder, "alpha")
    archive(folder, "beta", "0.12.0")
    dependencies(folder, f"cmsis-nn: {{git: {ARM}, version: v4.1.0}}")
    assert folder.mistakes("check") == [("requirement-two-versions", "mlfbuild.yml:10:3: dependencies.cmsis-nn")]
    project = folder.root / "mlfbuild.yml"
    text = project.read_text().replace("firmware:\n  app: {sources: [main.c], models: [alpha, beta]}\n", "")
    text = text.replace("  pc: {cpu: host}\n", "  pc: {cpu: host}\n  other: {cpu: host}\n")
    text = text.replace("alpha.tar}", "alpha.tar, targets: [pc]}").replace("beta.tar}", "beta.tar, targets: [other]}")
    project.write_text(text)
    assert folder.mistakes("check") == [("provider-other-version", "mlfbuild.yml:9:3: dependencies.cmsis-nn")], (
        "each target has a separate image"
    )


def test_unknown_version_must_be_stated(folder: Folder) -> None:
    archive(folder, "alpha", "0.8.0")
    assert folder.mistakes("check") == [("requirement-without-provider", "dependency cmsis-nn")]
    write_cmsis_nn(folder.root / "nn", "v4.1.0")
    dependencies(folder, "cmsis-nn: {path: nn}")
    place = "mlfbuild.yml:10:3: dependencies.cmsis-nn"
    assert folder.mistakes("check") == [("requirement-version-unknown", place), ("provider-without-files", place)]
    project = folder.root / "mlfbuild.yml"
    project.write_text(project.read_text().replace("{path: nn}", "{path: nn, version: v4.1.0}"))
    assert folder.run("check") == Ended(0, "mlfbuild.yml: no mistakes (1 target, 2 models, 1 firmware)\n", "")


def mark_as(root: Path, release: str) -> None:
    """Write the headers that identify ``release`` of CMSIS-NN into the copy ``root``."""
    for name, revision in CMSIS_NN.revisions[release].items():
        (root / "Include" / name).write_text(f"/* $Revision: {revision} */\n")


def test_folder_with_another_release_is_refused(folder: Folder) -> None:
    archive(folder, "alpha")
    write_cmsis_nn_repository(folder.root / "nn")
    mark_as(folder.root / "nn", "v7.0.0")
    dependencies(folder, "cmsis-nn: {path: nn, version: v4.1.0}")
    place = "mlfbuild.yml:10:3: dependencies.cmsis-nn"
    assert folder.mistakes("check") == [("release-other-headers", place)]
    project = folder.root / "mlfbuild.yml"
    project.write_text(project.read_text().replace("v4.1.0}", "v4.1.0, sources: [Sauce/*.c]}"))
    assert folder.mistakes("check") == [("pattern-matches-nothing", f"{place}.sources")]
    project.write_text(project.read_text().replace("Sauce", "Source/*"))
    (folder.root / "nn/Include/out.h").symlink_to("/etc/passwd")
    assert folder.refused("check") == (5, "library-file-refused", place)


@pytest.mark.parametrize(
    "declared",
    [
        ExternalDependency("x", "https://x.org/x", "svn", "1"),
        ExternalDependency("x", "https://x.org/x", "git", "^1"),
        ExternalDependency("../x", "https://x.org/x", "git", "1"),
    ],
    ids=["url_type", "version_spec", "short_name"],
)
def test_invalid_requirements_are_refused(folder: Folder, declared: ExternalDependency) -> None:
    archive(folder, "alpha", "0.14.0", declared)
    place = f"alpha (alpha.tar): dependency {declared.short_name!r}"
    assert folder.refused("check") == (5, "requirement-invalid", place)


def test_dependency_with_the_name_of_another_is_refused(folder: Folder) -> None:
    archive(folder, "alpha")
    archive(folder, "beta", "0.14.0", ExternalDependency("CMSIS_NN", "https://example.org/other.git", "git", "v4.1.0"))
    dependencies(folder, f"cmsis-nn: {{git: {ARM}, version: v4.1.0}}")
    assert folder.mistakes("check") == [("requirement-two-libraries", "mlfbuild.yml:10:3: dependencies.cmsis-nn")]


def test_the_archive_of_tvm_with_cmsis_nn(folder: Folder, shared: Path) -> None:
    source = shared / "archives/kws_int8-cmsisnn_m4.tar"
    folder.write(
        "mlfbuild.yml", f"mlfbuild: 1\ntargets: {{m4: {{cpu: cortex-m4}}}}\nmodels: {{kws: {{source: {source}}}}}\n"
    )
    ended = folder.run("check", status=2)
    assert "kws (kws_int8-cmsisnn_m4.tar) needs CMSIS-NN v4.1.0, " in ended.err
    assert ended.err.endswith(f"`cmsis-nn: {{git: {ARM}, version: v4.1.0}}`\n")


# doctor ---------------------------------------------------------------------------------------------------


def test_doctor_reports_fetched_dependencies(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(folder, "alpha")
    write_cmsis_nn_repository(folder.root / "mirror")
    monkeypatch.setenv("MLFBUILD_CACHE", str(folder.root / "cache"))
    folder.write("here/a.c", b"int a;\n")
    dependencies(folder, "cmsis-nn: {git: mirror, version: v4.1.0}", "own: {package: Own, version: '1'}", LIB)
    ended = folder.run("doctor", status=3)
    reason = "v4.1.0 of mirror is not in mlfbuild.lock"
    assert f"  pc  cannot be built (host): dependency cmsis-nn: {reason}\n" in ended.out
    assert (
        f"\ndependencies of mlfbuild.yml\n  cmsis-nn  v4.1.0 (git mirror): {reason}\n"
        "  own       1 (package Own)\n  lib       ? (path here)\n"
    ) in ended.out
    assert f"to install what is missing\n  dependency cmsis-nn: {reason}: run `mlfbuild lock` and commit" in ended.out

    assert folder.run("lock", "--model", "beta").status == 0
    ended = folder.run("doctor")
    assert (ended.status, ended.err) == (0, "")
    assert re.search(r"^  cmsis-nn  v4\.1\.0, commit [0-9a-f]{12} \(git mirror\)$", ended.out, re.MULTILINE)
    found, _, _ = folder.run("doctor", "--format", "json").json["dependencies"]
    assert (found["name"], found["version"], len(found["commit"]), found["missing"]) == ("cmsis-nn", "v4.1.0", 40, "")

    monkeypatch.setenv("MLFBUILD_CACHE", str(folder.root / "another"))
    ended = folder.run("doctor", status=3)
    assert re.search(r"^  cmsis-nn  v4\.1\.0 \(git mirror\): .*another.*$", ended.out, re.MULTILINE)
    assert "mlfbuild fetch" in ended.out
    assert folder.run("fetch").status == 0
    assert folder.run("doctor").status == 0
    folder.write("mlfbuild.lock", "{")
    ended = folder.run("doctor", status=3)
    assert re.search(r"^  cmsis-nn  v4\.1\.0 \(git mirror\): mlfbuild\.lock: ", ended.out, re.MULTILINE)
    assert "\nprograms\n" in ended.out, "all else is told as well"


def test_doctor_requires_git_only_if_needed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_CACHE", str(folder.root / "cache"))
    monkeypatch.setenv("MLFBUILD_GIT", "/nowhere/git")
    dependencies(folder, "lib: {git: mirror, version: v1}")
    ended = folder.run("doctor")
    assert "correct or unset the variable MLFBUILD_GIT=/nowhere/git" in ended.out
    assert "to install what is missing" in ended.out
    assert "builds" in ended.out, "no model needs it"


def test_doctor_reports_folders_with_another_version(folder: Folder) -> None:
    archive(folder, "alpha")
    write_cmsis_nn_repository(folder.root / "nn")
    mark_as(folder.root / "nn", "v7.0.0")
    dependencies(folder, "cmsis-nn: {path: nn, version: v4.1.0}")
    ended = folder.run("doctor", status=3)
    assert "  cmsis-nn  v4.1.0 (path nn): nn is stated to be v4.1.0, but its headers are those of v7.0.0\n" in ended.out
