"""Declarations of functions that TVM's registry repeats with other parameters."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from mlfbuild.c_analysis import repeated_declarations, without_repeated_declarations
from support.steps import assert_linear

_GUARD = '#ifdef __cplusplus\nextern "C"\n#endif\n'
_FIVE = "TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code"
_SIX = f"{_FIVE}, void* resource_handle"
_HANDLES = "void* args, void* type_code, int num_args, void* out_value, void* out_type_code, void* resource_handle"
_TYPES = "#include <stdint.h>\ntypedef int TVMValue;\ntypedef void (*TVMBackendPackedCFunc)(void);\n#define TVM_DLL\n"


def registry(*functions: str, parameters: str = _SIX) -> str:
    declared = "".join(f"{_GUARD}TVM_DLL int32_t {name}({parameters});\n" for name in functions)
    array = "".join(f"    (TVMBackendPackedCFunc){name},\n" for name in functions)
    return f"{_TYPES}{declared}static TVMBackendPackedCFunc _tvm_func_array[] = {{\n{array}}};\n"


OLD = registry("tvmgen_m_fused_add", "tvmgen_m_run_model", parameters=_FIVE) + (
    f"TVM_DLL int32_t tvmgen_m_run_model({_HANDLES});\nint32_t tvmgen_m_run({_HANDLES}) {{\n"
    "return tvmgen_m_run_model(args, type_code, num_args, out_value, out_type_code, resource_handle);\n}\n;"
)
NEW = registry("tvmgen_m_run", "tvmgen_m_fused_add", "tvmgen_m___tvm_main__") + (
    "struct tvmgen_m_inputs { void* x; };\nstruct tvmgen_m_outputs { void* y; };\n"
    "TVM_DLL int32_t tvmgen_m___tvm_main__(float* x_buffer_var,void* output0);\n"
    "int32_t tvmgen_m_run(struct tvmgen_m_inputs* inputs,struct tvmgen_m_outputs* outputs) {"
    "return tvmgen_m___tvm_main__(inputs->x,outputs->y);\n}\n;"
)
RIGHT = registry("tvmgen_m_run_model") + f"TVM_DLL int32_t tvmgen_m_run_model({_SIX});\n"
_UNUSED = ("-Wall", "-Werror", "-Wno-unused-variable")


def compiled(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "lib0.c").write_text(text)
    command = ["gcc", "-std=c99", "-c", *_UNUSED, "lib0.c", "-o", "lib0.o"]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("text", "names"),
    [(OLD, ["tvmgen_m_run_model"]), (NEW, ["tvmgen_m_run", "tvmgen_m___tvm_main__"]), (RIGHT, []), ("", [])],
)
def test_the_registry_declares_functions_with_other_parameters(text: str, names: list[str]) -> None:
    found = repeated_declarations(text)
    assert [each.name for each in found] == names
    for each in found:
        assert text[each.start : each.end].startswith(f"TVM_DLL int32_t {each.name}(TVMValue* args")
        assert text[each.start : each.end].endswith(");\n")
        assert text.splitlines()[each.line - 1] + "\n" == text[each.start : each.end]
        assert each.superfluous[0] == "TVMValue *"
        assert each.real[0] != "TVMValue *"


@pytest.mark.parametrize("text", [OLD, NEW])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_file_compiles_with_the_real_declarations(text: str, line_end: str, tmp_path: Path) -> None:
    text = text.replace("\n", line_end)
    assert "conflicting types" in compiled(text, tmp_path).stderr
    better = without_repeated_declarations(text)
    assert compiled(better, tmp_path).stderr == ""
    assert repeated_declarations(better) == ()
    differing = [pair for pair in zip(text.splitlines(), better.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(differing) == len(repeated_declarations(text))


def test_a_right_file_is_not_changed() -> None:
    assert without_repeated_declarations(RIGHT) is RIGHT


def test_declarations_without_a_registry_are_not_of_tvm() -> None:
    assert repeated_declarations("int32_t f(int a);\nint32_t f(void* a) { return 0; }\n") == ()


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab(){};,*\n/#\"' ", max_size=60), st.integers(0, len(NEW)))
@example("(" * 50, 700)
def test_any_text_is_accepted(inserted: str, at: int) -> None:
    text = NEW[:at] + inserted + NEW[at:]
    found = repeated_declarations(text)
    assert all(0 <= each.start < each.end <= len(text) for each in found)
    assert without_repeated_declarations(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("unit", ["TVM_DLL int32_t f(\n", "int32_t f(a);\n", "int32_t", "int32_t f(int a) {\n"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        text = unit * (size // len(unit))
        repeated_declarations(f"{text}_tvm_func_array[{text}")

    assert_linear(work, 40_000)
