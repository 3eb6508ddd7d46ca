"""Every error ends with what to do next: each place that makes one says so, or stands here with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import mlfbuild
from mlfbuild.frontends.advice import CHANGE, EXPORT_AGAIN
from mlfbuild.frontends.onnx import parse_onnx
from mlfbuild.frontends.tflite import parse_tflite
from mlfbuild.messages import advised
from support.advice import Site, sites, sites_in

FRONTENDS = "frontends/"
"""Below it reasons are raised without advice: ``parse_tflite`` and ``parse_onnx`` add it."""

ELSEWHERE = {
    ("compilers/archive.py", "check_placement"): "_in_its_code ends with it",
    ("compilers/external/archive.py", "exported_library"): "a finding of validate has advice of its own",
    ("compilers/native/ops/call.py", "unsupported"): "lower adds it",
    ("compilers/seams.py", "hooked"): "why_no_hook ends with it",
    ("cli/archive_verbs.py", "compare"): "the answer to what was asked; what differs is the result",
    ("cli/archive_verbs.py", "_compare_runs"): "the answer to what was asked; what differs is the result",
    ("dependencies/roots.py", "pin_of"): "steps/pins.py ends it with `mlfbuild lock`",
    ("manifest/document.py", "read_document"): "a problem of YAML, which says what is wrong at which column",
    ("manifest/document.py", "_decode"): "a problem with the advice to save as UTF-8",
    ("report/linker_map.py", "read_map"): "_no_map ends with it",
    ("scons/verify.py", "_verify"): "the whole report: which element is wrong, and the operator that it comes from",
    ("steps/budgets.py", "check_budgets"): "each line names what takes most: spend less there, or allow more",
    ("steps/compare_tensors.py", "pair_ports"): "_ports adds it",
    ("steps/compare_tensors.py", "_check"): "_ports adds it",
    ("steps/compilation.py", "check_ram"): "_less_memory names the option that helps, or a larger board",
    ("steps/init/archives.py", "require_c_interface"): "each of _obstacles says how to export it",
    ("steps/init/staging.py", "_refuse_conflicts"): "_words ends with it",
    ("steps/instructions.py", "check_profiles"): "each line names what takes most: spend less there, or allow more",
    ("steps/verify.py", "verify_jobs"): "each of left_out says what to add",
}
"""Places whose advice comes with what is filled in."""


@pytest.fixture(scope="module")
def found() -> list[Site]:
    return list(sites(Path(mlfbuild.__file__).parent))


def without(found: list[Site]) -> Iterator[Site]:
    for site in found:
        if not site.advises and not site.file.startswith(FRONTENDS) and (site.file, site.function) not in ELSEWHERE:
            yield site


def test_every_error_says_what_to_do_next(found: list[Site]) -> None:
    assert len(found) > 300, "errors are made by calling their class by its name"
    assert [f"{site.file}:{site.line}: {site.text}" for site in without(found)] == []


def test_what_is_excused_is_there_and_needs_it(found: list[Site]) -> None:
    silent = {(site.file, site.function) for site in found if not site.advises}
    assert set(ELSEWHERE) <= silent


@pytest.mark.parametrize(
    ("source", "advises"),
    [
        ("raise UsageError('x: unknown')", False),
        ("raise UsageError(f'{x}: is called {name}')", False),
        ("raise UsageError('x: is a name that is taken; the other one has it')", False),
        ("raise UsageError('x: unknown; choose another')", True),
        ("raise UsageError(f'x: unknown (use {known_ones})')", True),
        ("raise UsageError(f'x: unknown{suggestion(x, y)}')", True),
        ("raise UsageError('x: type y; supported are z')", True),
        ("raise UsageError(f'x: unknown; {ADVICE}')", True),
        ("raise UsageError(f'x: unknown; {NONE}')", False),
        ("raise UsageError(advised(f'x: {reason}', 'leave it out'))", True),
        ("raise ProjectFileError([f'{path}: unreadable'])", False),
        ("raise ProjectFileError([f'{path}: unreadable; check it'])", True),
        ("try:\n  f()\nexcept UsageError as error:\n  raise UsageError(f'{path}: {error}')", True),
        ("try:\n  f()\nexcept OSError as error:\n  raise UsageError(f'{path}: {error}')", False),
    ],
)
def test_what_counts_as_advice(source: str, advises: bool) -> None:
    (site,) = sites_in(source, "x.py", {"ADVICE": "build it again", "NONE": "too bad"})
    assert site.advises == advises


def test_model_files_get_their_advice_in_one_place() -> None:
    for parse, kind in ((parse_tflite, "TFLite"), (parse_onnx, "ONNX")):
        with pytest.raises(mlfbuild.errors.InputFileError, match=rf"^m: not a valid {kind} model: .*; {EXPORT_AGAIN}$"):
            parse(b"no model at all", "m", "m")


def test_advice_is_given_once() -> None:
    assert advised("m: no", CHANGE) == f"m: no; {CHANGE}"
    assert advised("m: no; take yes", CHANGE) == "m: no; take yes"
