"""Damage what mlfbuild reads besides models and archives: images, maps, vectors, lock files, bundles and reports."""

import ast
import functools
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile

from fuzz.model_mutate import ModelMutator
from fuzz.mutate import INTERESTING, Mutator
from fuzz.operations import assert_one_line
from fuzz.seeds import SUBJECT, sound_image
from mlfbuild.archive import tar
from mlfbuild.core import MlfError, sha256
from mlfbuild.library import identities
from mlfbuild.report import saved_report
from mlfbuild.report.sbom.components import compilers_of
from mlfbuild.requirements import (
    Lock,
    LockedModel,
    LockedProvider,
    LockedToolchain,
    check_replaceable,
    differences,
    drift,
    read_lock,
)
from mlfbuild.runners import check_fpu, read_firmware
from mlfbuild.targets import BOARDS, CPUS, MemoryRegion
from mlfbuild.usecases import report_image
from mlfbuild.verify import (
    BundledModel,
    DeviceBundle,
    VectorsOrigin,
    bundled_image,
    count_cases,
    load_inputs,
    load_vectors,
    pack_bundle,
    read_bundle,
    vectors_file,
    vectors_remarks,
)
from mlfbuild.verify.device.scratch_memory import find_room
from mlfbuild.verify.image import read_subject

Files = Mapping[str, bytes]
HASH = "0a" * 32
TEXTS = (
    "", "x" * 5000, "\x00", "\x1b[2J", "\u202e", "\ud800", "<script>", "../../x", "{{x}}", "a\nb", "\\", "%s", "-1",
    "1e999",
)  # fmt: skip
RAM = MemoryRegion("ram", 0x20000000, 1 << 20)


@contextmanager
def written(folder: Path, files: Files) -> Iterator[None]:
    """Write ``files`` into ``folder`` for the block, which must not leave others."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        yield
    finally:
        for name in files:
            (folder / name).unlink()


def _each(*steps: Callable[[], object]) -> None:
    """Take all steps, even if some refuse their input; raise the first refusal then."""
    refusals = [error for error in map(_refusal, steps) if error is not None]
    for error in refusals:
        assert_one_line(error)
    if refusals:
        raise refusals[0]


def _refusal(step: Callable[[], object]) -> MlfError | None:
    try:
        step()
    except MlfError as error:
        return error
    return None


# Images and linker maps ----------------------------------------------------------------------------------------------


def elf(number: int) -> bytes:
    """An image whose headers, symbols, debug information or code are damaged."""
    chance, sound = random.Random(number), sound_image()[0]
    if chance.random() < 0.3:
        return ModelMutator(number).binary(sound)
    changed, tables = bytearray(sound), _tables()
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.choice(chance.choice(tables))
        known = int.from_bytes(changed[at : at + 4], "little")
        value = chance.choice((*INTERESTING, known + 1, known - 1, known ^ 1 << chance.randrange(32)))
        changed[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes(changed)


@functools.cache
def _tables() -> list[range]:
    """The places of words in the header, the tables of segments and sections, and the symbols of the sound image."""
    found = ELFFile(io.BytesIO(sound_image()[0]))
    symbols = found.get_section_by_name(".symtab")
    places = [
        (0, 52),
        *((found[f"e_{kind}off"], found[f"e_{kind}num"] * found[f"e_{kind}entsize"]) for kind in ("ph", "sh")),
    ]
    return [range(start, start + size, 4) for start, size in (*places, (symbols["sh_offset"], symbols["sh_size"]))]


def linker_map(number: int) -> bytes:
    """The map of a sound image with other text, numbers or order of lines."""
    chance, mutator, text = random.Random(number), Mutator(number), sound_image()[1]
    if chance.random() < 0.3:
        return mutator.text(text)
    if chance.random() < 0.1:
        return mutator.damaged(text)
    lines = text.split(b"\n")
    for _ in range(chance.choice((1, 1, 2, 8))):
        at, other = (chance.randrange(len(lines)) for _ in range(2))
        change = chance.randrange(4)
        if change == 0:
            lines[at] = lines[other]
        elif change == 1:
            lines[at], lines[other] = lines[other], lines[at]
        elif change == 2:
            lines.insert(at, lines[other])
        else:
            words = lines[at].split(b" ")
            places = [place for place, word in enumerate(words) if word.startswith(b"0x")] or [len(words) - 1]
            words[chance.choice(places)] = b"0x%x" % chance.choice((*INTERESTING, 1 << 200))
            lines[at] = b" ".join(words)
    return b"\n".join(lines)


def read_elf(data: bytes, _number: int, folder: Path) -> None:
    path = folder / "app.elf"
    with written(folder, {"app.elf": data, "app.elf.map": sound_image()[1]}):
        _each(
            lambda: _reported(path),
            lambda: read_subject(path),
            lambda: check_fpu(path, CPUS["cortex-m4"]),
            lambda: _located(path),
            lambda: bundled_image(_bundle(), path),
            lambda: (compilers_of(data), identities(data)),
        )


def read_map(data: bytes, _number: int, folder: Path) -> None:
    with written(folder, {"app.elf": sound_image()[0], "app.elf.map": data}):
        _reported(folder / "app.elf")


def _reported(path: Path) -> None:
    document = report_image(path)
    document.as_text(verbose=True)
    document.faults()
    saved = path.with_name("report.json")
    with written(path.parent, {saved.name: json.dumps(document.as_json()).encode()}):
        saved_report(saved).as_text(verbose=True)


def _located(path: Path) -> None:
    """Find what a model in a shipping image takes: functions, their lines, and free memory."""
    firmware = read_firmware(path)
    firmware.vectors()
    for address in (firmware.entry, *(start for start, _ in list(firmware.functions.values())[:3])):
        firmware.place_of(address)
    find_room(firmware, RAM, RAM.origin + RAM.size, 4096)


# Vectors -------------------------------------------------------------------------------------------------------------

SHAPES = (
    "(True,)", "(2, True, 3)", "(-1,)", "(0,)", "()", "(2.0,)", "(1 << 62,)", "(4611686018427387904, 4)", "((2,),)",
    "[2]", "(2, 1, 2, 3,)", "None", "('2',)", "(2" + ", 1" * 70 + ")", "(1099511627776,)", "2",
)  # fmt: skip
TYPES = (
    "'|O'", "'<f2'", "'>i4'", "'>f4'", "'<U10'", "'|V8'", "[('a', '<i4')]", "'<M8[ns]'", "'|b1'", "'<c16'", "'|i1'",
    "'<f4'", "''", "'|S0'", "('<f4', (2,))", "'<f4,' * 9", "'<g'",
)  # fmt: skip


@functools.cache
def _vectors() -> bytes:
    draws = np.random.default_rng(3)
    inputs = [draws.integers(-128, 128, (4, 1, 2, 3)).astype(np.int8), draws.random((4, 1), np.float32)]
    return vectors_file(inputs, [draws.random((4, 2), np.float32)], VectorsOrigin("onnx 1.18", True, 1, HASH))


def vectors(number: int) -> bytes:
    """Vectors with other names, shapes, types or content of arrays, and damaged ZIP files."""
    chance, mutator, sound = random.Random(number), Mutator(number), _vectors()
    if chance.random() < 0.2:
        return mutator.damaged(sound)
    with zipfile.ZipFile(io.BytesIO(sound)) as archive:
        members, comment = [(name, archive.read(name)) for name in archive.namelist()], archive.comment
    if chance.random() < 0.2:
        members.append(("tolerance.npy", members[1][1]))
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(members))
        name, content = members[at]
        change = chance.randrange(6)
        if change == 0:
            name = chance.choice(("in_samples.npy", "out0", "x.npy", "in0.txt", "../in0.npy", "\u202e.npy", name[:-1]))
        elif change == 1:
            content = mutator.damaged(content)
        else:
            content = _with_header(content, chance)
        members[at] = (name, content)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in dict(members).items():
            archive.writestr(name or "x", content)
        archive.comment = mutator.json(comment) if chance.random() < 0.2 else comment
    return made.getvalue()


def _with_header(content: bytes, chance: random.Random) -> bytes:
    """Return a ``.npy`` file with another header, whose length is right."""
    length = int.from_bytes(content[8:10], "little")
    try:
        header = content[10 : 10 + length].decode("latin1")
        fields = {key: repr(value) for key, value in ast.literal_eval(header).items()}
    except (ValueError, SyntaxError, AttributeError):  # it was damaged before
        return content
    fields[chance.choice(("shape", "shape", "descr", "fortran_order"))] = chance.choice((*SHAPES, *TYPES, "True", "1"))
    made = "{" + ", ".join(f"{key!r}: {value}" for key, value in fields.items()) + "}\n"
    return b"\x93NUMPY\x01\x00" + len(made).to_bytes(2, "little") + made.encode() + content[10 + length :]


def read_vectors(data: bytes, _number: int, folder: Path) -> None:
    path = folder / "vectors.npz"
    with written(folder, {"vectors.npz": data}):
        _each(
            lambda: load_vectors(path, SUBJECT),
            lambda: load_inputs(path, SUBJECT),
            lambda: count_cases(path),
            lambda: [assert_printable(remark) for remark in vectors_remarks(path, HASH)],
        )


def assert_printable(text: str) -> None:
    assert text.isprintable(), f"not one line: {text!r}"


# Lock files ----------------------------------------------------------------------------------------------------------

LOCK = Lock(
    models={"kws": LockedModel("models/kws.tflite", HASH, "native 0.1.0", weights={"kws.data": HASH})},
    archives={"m4": {"kws": HASH}},
    dependencies={
        "cmsis-nn": LockedProvider("git", "https://example.org/CMSIS-NN", "v7.0.0", commit="3f" * 20, tree=HASH),
        "dsp": LockedProvider("path", "../dsp", content=HASH),
        "fft": LockedProvider("url", "https://example.org/fft.tar.gz", "2.1", sha256=HASH),
        "rtos": LockedProvider("package", "FreeRTOS", "11.0"),
    },
    toolchains={"m4": LockedToolchain({"arm-none-eabi-gcc": "arm-none-eabi-gcc 12.2.1"}, HASH)},
)


def lock(number: int) -> bytes:
    """A lock file with other facts, half of them with the hash of these, or other text."""
    chance, mutator, sound = random.Random(number), Mutator(number), LOCK.to_text().encode()
    if chance.random() < 0.3:
        return mutator.text(sound) if chance.random() < 0.7 else mutator.damaged(sound)
    document = json.loads(sound)
    for _ in range(chance.choice((1, 1, 2, 5))):
        put_text(chance, document) if chance.random() < 0.4 else mutator.change(document)
    if chance.random() < 0.5:
        facts = {key: document[key] for key in ("archives", "dependencies", "models", "toolchains") if key in document}
        document["content-hash"] = sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode())
    return json.dumps(document, indent=2).encode()


def read_lock_file(data: bytes, _number: int, folder: Path) -> None:
    path = folder / "mlfbuild.lock"
    with written(folder, {"mlfbuild.lock": data}):
        _each(lambda: check_replaceable(path), lambda: _compared_lock(path))


def _compared_lock(path: Path) -> None:
    found = read_lock(path)
    assert found is not None
    assert found.to_text() == Lock(found.models, found.archives, found.dependencies, found.toolchains).to_text()
    for line in (*drift(found, LOCK), *(each.as_drift() for each in differences(found, LOCK))):
        assert_printable(line)


def put_text(chance: random.Random, document: Any) -> None:
    """Replace a text or a number somewhere in ``document``."""
    places: list[tuple[Any, Any]] = []
    stack = [document]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        stack += [node[key] for key in keys if isinstance(node[key], dict | list)]
        places += [(node, key) for key in keys if isinstance(node[key], str | int)]
    if places:
        node, key = chance.choice(places)
        node[key] = chance.choice(TEXTS if isinstance(node[key], str) else INTERESTING)


# Bundles -------------------------------------------------------------------------------------------------------------


@functools.cache
def _bundle() -> DeviceBundle:
    models = (BundledModel(SUBJECT, "alpha.tar", HASH, HASH, _vectors()),)
    return DeviceBundle("m4", CPUS["cortex-m4"], BOARDS["mps2-an386"], None, models)


def bundle(number: int) -> bytes:
    """A bundle with other members or facts, most of them with the right hashes of files."""
    chance, mutator = random.Random(number), Mutator(number)
    files = {name: bytes(content) for name, content in tar.members(io.BytesIO(pack_bundle(_bundle())), "b").items()}
    if chance.random() < 0.2:
        return mutator.archive(files)
    name = chance.choice(list(files))
    if name.endswith(".npz"):
        files[name] = vectors(number)
    else:
        document = json.loads(files[name])
        for _ in range(chance.choice((1, 1, 2, 5))):
            put_text(chance, document) if chance.random() < 0.5 else mutator.change(document)
        files[name] = json.dumps(document).encode(errors="surrogatepass")
    manifest = json.loads(files["bundle.json"])
    if chance.random() < 0.9 and isinstance(manifest.get("files"), dict):
        manifest["files"] |= {name: sha256(content) for name, content in files.items() if name != "bundle.json"}
        files["bundle.json"] = json.dumps(manifest).encode(errors="surrogatepass")
    return b"".join(tar.pack(files, 0))


def read_bundle_file(data: bytes, _number: int, folder: Path) -> None:
    path = folder / "app.mlfbundle"
    with written(folder, {"app.mlfbundle": data, "app.elf": sound_image()[0]}):
        found = read_bundle(path)
        assert pack_bundle(found) == pack_bundle(found)
        _each(lambda: bundled_image(found, folder / "app.elf"), *(_loading(each, folder) for each in found.models))


def _loading(found: BundledModel, folder: Path) -> Callable[[], object]:
    def load() -> None:
        if found.vectors is not None:
            with written(folder, {"v.npz": bytes(found.vectors)}):
                load_vectors(folder / "v.npz", found.subject)

    return load
