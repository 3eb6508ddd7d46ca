"""``mlfbuild boards`` lists what a target can name, and the first screen of help leads to everything else."""

import pytest

from mlfbuild.cli.app import FIRST, VERBS
from mlfbuild.targets import BOARDS, CPUS, MCUS
from support.command import Folder


def test_all_tables_are_listed(folder: Folder) -> None:
    names = {(each["key"], each["name"]) for each in folder.run("boards", "--format", "json").json}
    assert {("cpu", name) for name in CPUS} | {("board", name) for name in BOARDS} <= names
    assert {("mcu", name) for name in MCUS} < names


def test_beginning_of_a_name_selects(folder: Folder) -> None:
    listed = folder.run("boards", "--format", "json", "STM32F407", "stm32l4r5").json
    found = {each["name"]: each for each in listed}
    assert found["stm32f407?g"] == {
        "key": "mcu", "name": "stm32f407?g", "cpu": "cortex-m4", "mcu": "", "flash": 1 << 20, "ram": 128 << 10,
        "cycles": False, "server": "", "usb": "", "title": "",
    }  # fmt: skip
    assert found["stm32l4r5"]["cycles"]
    # Boards are also selected by their microcontroller.
    board = found["disco-f407vg"]
    assert (board["key"], board["mcu"], board["server"], board["flash"]) == (
        "board", "stm32f407vgt6", "openocd", 1 << 20,
    )  # fmt: skip
    assert found["nucleo-l4r5zi"]["cycles"]


def test_middle_of_a_name_selects_if_no_name_begins_with_it(folder: Folder) -> None:
    assert {each["name"] for each in folder.run("boards", "--format", "json", "feather-m4").json} == {
        "adafruit-feather-m4", "adafruit-feather-m4-can",
    }  # fmt: skip
    assert folder.run("boards", "--format", "json", "pico").json[0]["name"] == "pico"


def test_title_selects_if_no_name_has_the_words(folder: Folder) -> None:
    found = folder.run("boards", "--format", "json", "raspberry pi", "f407vg").json
    assert {"pico", "disco-f407vg"} <= {each["name"] for each in found}


def test_unknown_name_is_refused(folder: Folder) -> None:
    assert folder.refused("boards", "toaster") == (2, "unknown-mcu", "toaster")


@pytest.mark.parametrize("arguments", [("--help",), ("help",), ("-h",)])
def test_first_screen_has_ten_verbs_at_most(folder: Folder, arguments: tuple[str, ...]) -> None:
    text = folder.run(*arguments).out
    assert len(text.splitlines()) <= 24
    assert {word for word in VERBS if f"\n  {word} " in text} == set(FIRST)
    assert "mlfbuild help --all" in text


def test_whole_help_has_every_verb(folder: Folder) -> None:
    text = folder.run("help", "--all").out
    assert [word for word in VERBS if f"\n  {word} " not in text] == []


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("test", "verify"), ("size", "report"), ("clean", "build"), ("kws.tflite", "compile kws.tflite"),
        ("kws.tar", "run kws.tar"), ("reprot", "report"), ("archive run", "inspect"),
    ],
)  # fmt: skip
def test_wrong_word_leads_to_the_right_one(folder: Folder, words: str, meant: str) -> None:
    ended = folder.run(*words.split(), status=2)
    assert meant in ended.err


def test_verb_of_archives_has_two_names(folder: Folder) -> None:
    ended = folder.run("inspect", "--help")
    assert folder.run("archive", "inspect", "--help") == ended
    assert folder.run("help", "inspect") == ended
