"""Facts of C files, including hostile ones."""

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.c_analysis.c_file import CFile, Function, Registry, defined_functions, read_c_file
from mlfbuild.c_analysis.c_text import tokens
from support.steps import assert_linear


def read(text: str) -> CFile:
    return read_c_file("a.c", tokens(text))


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("int f(void);", [Function("f", ("void",))]),
        ("TVM_DLL int32_t f(TVMValue* args, int* codes);", [Function("f", ("TVMValue *", "int *"))]),
        ("int f(int (*g)(int, int), int n) { return g(n, n); }", [Function("f", ("int ( * g ) ( int , int )", "int"))]),
        ("static inline void f(void) { int g(void); g(); }", [Function("f", ("void",))]),
        ("int f(void) {}\nint h(void);", [Function("f", ("void",)), Function("h", ("void",))]),
        ('extern "C" {\nint f(void);\n}\nint g(void);', [Function("f", ("void",)), Function("g", ("void",))]),
        ('extern "C"\nint f(void);', [Function("f", ("void",))]),
        ("__attribute__((noinline)) int f(void) { return 0; }", [Function("f", ("void",))]),
        ("int a = f(3); int b[] = {f(4)};", []),
        ("static int (*f)(void); typedef int g(void); f(1);", []),
        ("/* int f(void); */ // int g(void);\nconst char* s = \"int h(void);\";", []),
    ],
)  # fmt: skip
def test_functions(text: str, functions: list[Function]) -> None:
    assert list(read(text).functions) == functions


def test_structs_with_invalid_member_names() -> None:
    text = "struct a { void* x; int8_t y[4] __attribute__((aligned(16))); void* 2z; void* int; };\nstruct b;\n"
    assert read(text).structs == {"a": ("x", "y", "2z", "int")}


def test_a_struct_with_a_value() -> None:
    text = "static struct pool {\n  float w[2];\n} pool = {\n  .w = {1, 2},\n};\nint f(void);"
    source = read(text)
    assert source.structs == {"pool": ("w",)} and [item.name for item in source.functions] == ["f"]


def test_directives() -> None:
    text = '#include <a.h>\n# include "b/c.h" // d.h\n'
    text += "#define A 1 // one\n#define A /* two */ 2\n#define F(x) 3\n#define B\n"
    source = read(text)
    assert source.includes == ("a.h", "b/c.h")
    assert source.macros == (("A", "1"), ("A", "2"), ("B", ""))


@pytest.mark.parametrize(
    ("text", "count", "names"),
    [
        (r'"\002\000f\000g\000"', 2, ("f", "g")),
        (r'"\002f\000g\000"', 2, ("f", "g")),  # TVM 0.8
        (r'"\054\001f\000" "g\000"', 300, ("f", "g")),
        ('""', 0, ()),
    ],
)
def test_registries(text: str, count: int, names: tuple[str, ...]) -> None:
    functions = "".join(f"    (TVMBackendPackedCFunc){name},\n" for name in "fg")
    source = f"static TVMBackendPackedCFunc _tvm_func_array[] = {{\n{functions}}};\n"
    source += f"static const TVMFuncRegistry _tvm_func_registry = {{\n    {text},    _tvm_func_array,\n}};\n"
    assert read(source).registry == Registry(count, names, ("f", "g"))


def test_a_file_without_a_registry() -> None:
    assert read("const TVMModule* TVMSystemLibEntryPoint(void) { return 0; }").registry is None


PIECES = [
    *"{}();,=#\"'\\\n*/", "struct x", 'extern "C"', "TVMFuncRegistry", "int f(", "#define A ", "/*", "//", "2x", " ",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=60).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_text_is_accepted(text: str) -> None:
    read(text)


@pytest.mark.parametrize(
    "piece",
    ["{}", "x{} ", "struct a{", "f(", "f(){}", "int a;", 'extern "C"{', "#define A(\n", "TVMFuncRegistry{", ")", "/*"],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    assert_linear(lambda count: read(piece * count), 5_000)


def test_defined_functions_have_places() -> None:
    text = (
        '#include <stdint.h>\n/* A comment. */\nint32_t declared(void);\n#ifdef __cplusplus\nextern "C"\n#endif\n'
        "int32_t first(int a) {\n  if (a) { return 1; }\n  return 0;\n}\n"
        'struct pair { int a; };\nstatic int array[] = {1};\nextern "C" {\nstatic void second(void) { }\n}\n'
    )
    found = list(defined_functions(text))
    assert [(each.name, each.line) for each in found] == [("first", 7), ("second", 14)]
    assert [text[each.start : each.end] for each in found] == [
        "int32_t first(int a) {\n  if (a) { return 1; }\n  return 0;\n}",
        "static void second(void) { }",
    ]


@given(st.text('"\\{}();,#*/ ax0\n', max_size=60))
def test_definitions_of_any_text_are_inside_it(text: str) -> None:
    for each in defined_functions(text):
        assert 0 <= each.start < each.end <= len(text)
