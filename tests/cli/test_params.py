"""`mlfbuild params`; tests/jobs/test_params_binary.py tests various images."""

from support.command import Folder


def test_bytes_of_a_section(bare: Folder) -> None:
    ended = bare.run("params", "app.elf", "--section", ".rodata", "-o", "out/app.bin")
    assert (ended.status, ended.err) == (0, "")
    data = (bare.root / "out/app.bin").read_bytes()
    assert ended.out.startswith(f"out/app.bin: {len(data):,} bytes of .rodata for address 0x")
    facts = bare.run("params", "app.elf", "--section", ".rodata", "-o", "app.bin", "--format", "json").json
    assert (facts["file"], facts["section"], facts["size"]) == ("app.bin", ".rodata", len(data))
    assert bare.run("params", "app.elf", "--section", ".rodata", "-o", "app.bin", "-q").out == ""


def test_missing_section_is_refused(bare: Folder) -> None:
    ended = bare.run("params", "app.elf", "-o", "app.bin")
    assert (ended.status, ended.out) == (5, "")
    assert not (bare.root / "app.bin").exists()
