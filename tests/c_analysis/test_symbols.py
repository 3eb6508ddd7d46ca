import re
import struct
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.c_analysis.objects import MERGED, SHARED, Symbols, object_symbols, weak_definitions
from mlfbuild.c_analysis.source_symbols import c_symbols
from mlfbuild.core.errors import InputFileError
from mlfbuild.targets import CPUS
from support.errors import raises
from support.native import compile_bytes
from support.steps import assert_linear
from support.tvm_headers import write_tvm_headers

Tool = Callable[[str], str]


def compiled(source: str, folder: Path, compiler: str, *flags: str, suffix: str = ".c") -> bytes:
    (folder / f"source{suffix}").write_text(source)
    command = [compiler, *flags, "-c", str(folder / f"source{suffix}"), "-o", str(folder / "source.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (folder / "source.o").read_bytes()


def nm(data: bytes, folder: Path, *flags: str) -> Symbols:
    """Return the symbols that GNU nm lists for an object, without those that compilers add, such as ``f.part.0``."""
    (folder / "listed.o").write_bytes(data)
    command = ["arm-none-eabi-nm" if data[18] == 40 else "nm", *flags, str(folder / "listed.o")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names: dict[str, set[str]] = {"U": set(), "weak": set(), "local": set(), "global": set()}
    for kind, name in re.findall(r"^.{8,16} (\w) (.+)$", "\n".join(lines), re.MULTILINE):
        names["U" if kind in "Uw" else "weak" if kind in "WVCu" else "local" if kind.islower() else "global"].add(name)
    return Symbols(*(frozenset(names[kind]) for kind in ("global", "weak", "local", "U")))


def archives(shared: Path, pattern: str = "*.tar") -> list[Path]:
    found = sorted((shared / "archives").glob(pattern))
    assert len(found) >= (20 if pattern == "*.tar" else 1)
    return found


def members(archive: Path, *suffixes: str) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        files = [member for member in tar if member.isfile() and member.name.endswith(suffixes)]
        return {member.name.removeprefix("./"): tar.extractfile(member).read() for member in files}  # type: ignore[union-attr]


# C, against the compiler ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["add-*.tar", "byoc-*.tar", pytest.param("*.tar", marks=pytest.mark.sweep)])
def test_symbols_of_tvm_sources(pattern: str, shared: Path, tmp_path: Path, tool: Tool) -> None:
    compiler = tool("arm-none-eabi-gcc")
    include = write_tvm_headers(tmp_path / "include")
    for archive in archives(shared, pattern):
        for name, data in members(archive, ".h").items():
            (include / Path(name).name).write_bytes(data)
        for name, data in members(archive, ".c").items():
            source = data.decode()
            found = c_symbols(source)
            expected = nm(
                compiled(source, tmp_path, compiler, "-w", "-O0", "-std=gnu99", "-mcpu=cortex-m4", "-I", str(include)),
                tmp_path,
            )
            assert (found.defined, found.weak) == (expected.defined, expected.weak), f"{archive.name}: {name}"
            assert {name for name in expected.local if name.isidentifier()} <= found.local, f"{archive.name}: {name}"


@pytest.mark.parametrize("name", ["kws_int8", pytest.param("ad_f32", marks=pytest.mark.sweep)])
def test_symbols_of_native_sources(name: str, shared: Path, tmp_path: Path, tool: Tool) -> None:
    library = compile_bytes((shared / f"models/{name}.tflite").read_bytes(), name)
    for file in library.modules[0].codegen:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    flags = (*CPUS["cortex-m4"].flags, "-I", str(tmp_path / "host/include"), "-I", str(tmp_path / "host/src"))
    for path in sorted((tmp_path / "host/src").glob("*.c")):
        expected = nm(compiled(path.read_text(), tmp_path, tool("arm-none-eabi-gcc"), *flags), tmp_path)
        found = c_symbols(path.read_text())
        assert (found.defined, found.weak) == (expected.defined, expected.weak)


C_CASES = {
    "functions": "int f(int a) { return a; } static int g(void) { return 1; } int h(int); int k(void) { return g(); }",
    "static by an earlier prototype": "static int f(void); int f(void) { return 1; } int k(void) { return f(); }",
    "tentative": "int a; int b, *c, d[3]; extern int e; static int s; void *ctx = (void *)0;",
    "extern with a value": "extern int a; int a = 3; extern int b;",
    "structs": "struct p { int x, y; }; struct p a = { 1, 2 }; struct p *f(struct p *q) { return q; } struct q;",
    "anonymous struct": "static struct { int x; } a = { 1 }, b; struct { int y; } c; enum { one, two } e = two;",
    "designated": "struct p { int x[2]; }; struct p a = { .x = { 1, 2 } }, b = { .x[0] = 3 };",
    "typedefs": "typedef int t; typedef struct { int x; } s, *ps; typedef int (*fn)(int); t a; s b; ps c; fn d;",
    "function pointers": "int (*f)(int); int (*g[2])(int); int (*h(int a))(int) { (void)a; return f; } int (k)(void);",
    "parenthesised": "int (f)(void) { return 1; } int (*(g)) = 0;",
    "arrays of strings": 'const char *names[] = { "a{", "b}", "c\\"" }; const char quote = \'"\', brace = \'{\';',
    "attributes": (
        "__attribute__((section(\".a\"), aligned(16))) static unsigned char pool[4]; int u(void) { return pool[0]; }"
        "__attribute__((noinline)) int f(void) { return 2; } int g(void) __attribute__((weak));"
        "int g(void) { return 3; } int w __attribute__((weak)) = 1; __attribute__((weak)) int x(void) { return 4; }"
        "struct __attribute__((packed)) q { char c; } r; int y[2] __attribute__((aligned(8))) = { 1, 2 };"
    ),
    "alias": 'int f(void) { return 1; } int g(void) __attribute__((alias("f")));',
    "weak declaration": "int f(void) __attribute__((weak)); int g(void) { return f ? f() : 0; }",
    "inline": "inline int f(void) { return 1; } static inline int g(void) { return 2; } int k(void) { return g(); }",
    "extern inline": "extern inline int f(void) { return 1; }",
    "macros": (
        "#define API __attribute__((visibility(\"default\")))\n#define HIDDEN static\n#define EMPTY\n"
        "API int f(void) { return 1; }\nHIDDEN int g(void) { return 2; }\nEMPTY int k(void) { return g(); }\n"
    ),
    "macros that define": (
        "#define ADD(name, type, op) \\\n type name(type a, type b) { \\\n return a op b; }\n"
        "#define PASTE(a, b) int a##_##b = 1\nADD(sum, int, +)\nADD(mul, float, *);\nPASTE(x, y);\n"
        "#define LATER(n) n\nint LATER = 2;\n"
    ),
    "conditions": (
        "#if 0\nint no(void) { return 0; }\n#else\nint yes(void) { return 1; }\n#endif\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(void) { return 1; }\n#ifdef __cplusplus\n}\n#endif\n"
        "#if 1\nint one;\n#elif 1\nint two;\n#endif\n#if !defined(__cplusplus)\nint c;\n#endif\n"
    ),
    "conditions around braces": (
        "int f(int a)\n#if 1\n{ if (a) {\n#else\n{ { if (!a) {\n#endif\n return a; } return 2; }\n"
        "int g(void) { return 1; }\n"
    ),
    "open conditions": (
        "#ifndef GUARD\n#define GUARD\n#endif\n#ifdef FAST\nint f(int a) {\n  if (a) {\n#else\nint f(int b) {\n  {\n"
        "#endif\n  return 1; }\n  return 0; }\nint g;\n"
    ),
    "comments": "int /* f(void) { */ a; // int b;\n/* { */ int c; int d = 1 /* } */ ; // \\\nint e;\n",
    "assembler": '__asm__("nop"); int f(void) { __asm__ volatile("nop"); return 1; } int g __asm__("h_g");',
    "static asserts": '_Static_assert(sizeof(int) == 4, "int; {"); int a;',
    "statements at file scope": ";;; int a;; int b; };"[:-3],
    "multiline": "TYPE\nint\nf\n(\nint a\n)\n{\n  return a ? 1 : 2;\n}\n".replace("TYPE\n", ""),
    "bit fields": "struct b { unsigned x : 3, y : 5; } a; unsigned int b; unsigned c = 1u; long long d;",
    "compound literals": "int *p = (int[]){ 1, 2 }; int q = sizeof(struct { int z; });",
    "const": "const int a = 1; const int *b; int *const c = 0; static const int d = 1; int u(void) { return d; }",
}  # fmt: skip


@pytest.mark.parametrize("case", C_CASES)
@pytest.mark.parametrize("name", ["gcc", "arm-none-eabi-gcc"])
def test_c_agrees_with_the_compiler(name: str, case: str, tmp_path: Path, tool: Tool) -> None:
    source = C_CASES[case]
    expected = nm(compiled(source, tmp_path, tool(name), "-w", "-O0", "-std=gnu99"), tmp_path)
    found = c_symbols(source)
    renamed = {"h_g": "g"}  # assembler names in the file are not supported
    assert found.defined == {renamed.get(name, name) for name in expected.defined}
    assert found.weak == expected.weak
    assert {name for name in expected.local if name.isidentifier()} <= found.local
    assert not found.declared & (found.defined | found.weak | found.local)


CXX_CASES = {
    "linkage": 'extern "C" int f(void) { return 1; } extern "C" { int g() { return 2; } int a; extern int b; }',
    "guards": '#ifdef __cplusplus\nextern "C"\n#endif\nint f(void) { return 1; }\n',
    "names": "int f(int a) { return a; } namespace n { int g() { return 1; } namespace m { int h = 2; } }",
    "classes": "struct A { int x; int f() { return x; } int g() const; }; int A::g() const { return x; } A a;",
    "local": "namespace { int a = 1; int f() { return a; } } static int g() { return f(); } int k() { return g(); }",
    "constants": "const int a = 1; extern const int b = 2; const char *c = 0; const char *const d = 0;",
    "templates": "template <class T> T f(T a) { return a; } int g() { return f(1); }",
    "inline": "inline int f() { return 1; } int g() { return f(); }",
}


@pytest.mark.parametrize("case", CXX_CASES)
def test_cplusplus_agrees_with_the_compiler(case: str, tmp_path: Path, tool: Tool) -> None:
    source = CXX_CASES[case]
    data = compiled(source, tmp_path, tool("g++"), "-w", "-O0", suffix=".cc")
    expected = nm(data, tmp_path, "--demangle")
    found = c_symbols(source, cplusplus=True)
    plain = nm(data, tmp_path)

    def spelled(names: frozenset[str], mangled: frozenset[str]) -> set[str]:
        return {re.sub(r"\(.*\).*", "()", name) if name not in mangled else name for name in names}

    assert found.defined == spelled(expected.defined, plain.defined)
    assert expected.weak == frozenset() or found.weak


def test_functions_that_macros_of_tvm_define() -> None:
    source = "int32_t net_wrapper_(DLTensor* a) { return 0; }\nTVM_DLL_EXPORT_TYPED_FUNC(net, net_wrapper_);\n"
    assert c_symbols(source, cplusplus=True).defined == {"net", "net_wrapper_()"}


def test_c_symbols_include_declarations() -> None:
    found = c_symbols("int f(int); extern int a; TVM_DLL int32_t g(void* args);\nint h(void) { return f(a); }\n")
    assert found == Symbols(defined=frozenset({"h"}), declared=frozenset({"f", "a", "g"}))


@given(st.text(alphabet="{}()[];,=\"'#/*\\\n aif<:"))
def test_any_text_is_accepted(text: str) -> None:
    c_symbols(text)
    c_symbols(text, cplusplus=True)


@pytest.mark.parametrize(
    "piece",
    ["{", "}", "(", "int f(", "int a[", "#if X\n", "#define A(x) x x x x\nA(A(A(", "namespace a {", 'extern "C" {',
     "a,", "int a=", "__attribute__((", "#define A " + "B " * 1000 + "\nA A A A ", "(*", "a::", "#if X\nint\n#else\n",
     "a{}", "a{} b = "],
)  # fmt: skip
def test_hostile_text_takes_linear_time(piece: str) -> None:
    def work(count: int) -> None:
        text = piece * (count // len(piece))
        c_symbols(text)
        c_symbols(text, cplusplus=True)

    assert_linear(work, 6_000)


# Objects -------------------------------------------------------------------------------------------------------------

OBJECT_SOURCE = """
int defined(void) { return 1; }
int data = 2;
int common_or_bss;
static int local_data = 3;
extern int missing;
__attribute__((weak)) int weak_one(void) { return 4; }
int user(void) { return missing + local_data; }
"""


@pytest.mark.parametrize("name", ["gcc", "arm-none-eabi-gcc"])
def test_objects_agree_with_nm(name: str, tmp_path: Path, tool: Tool) -> None:
    data = compiled(OBJECT_SOURCE, tmp_path, tool(name), "-O0", "-fcommon")
    found = object_symbols(data, "source.o")
    expected = nm(data, tmp_path)
    assert (found.defined, found.weak, found.declared) == (expected.defined, expected.weak, expected.declared)
    assert found.defined == {"defined", "data", "user"}
    assert found.weak == {"weak_one", "common_or_bss"}
    assert found.declared >= {"missing"}
    assert "local_data" in found.local


@pytest.mark.parametrize("name", ["gcc", "arm-none-eabi-gcc"])
def test_objects_of_link_time_optimisation_have_the_same_symbols(name: str, tmp_path: Path, tool: Tool) -> None:
    data = compiled(OBJECT_SOURCE, tmp_path, tool(name), "-O2", "-fcommon", "-flto", "-fno-fat-lto-objects")
    found = object_symbols(data, "source.o")
    assert found.defined == {"defined", "data", "user"}
    assert found.weak - {"__gnu_lto_slim"} == {"weak_one", "common_or_bss"}
    assert found.declared == {"missing"}
    at = data.index(b"weak_one\0\0") + len(b"weak_one\0\0")
    with raises(InputFileError, "object-damaged", at="source.o"):
        object_symbols(data[:at] + b"\x77" + data[at + 1 :], "source.o")


WEAK_SOURCE = """
extern int other;
static const char text[] = "text";
__attribute__((weak)) int weak_one(int x) { return x ? other + NUMBER : 1; }
__attribute__((weak)) const char *weak_two(void) { return text; }
__attribute__((weak)) int weak_data;
"""


@pytest.mark.parametrize("name", ["gcc", "arm-none-eabi-gcc"])
def test_weak_definitions_differ_if_their_bytes_do(name: str, tmp_path: Path, tool: Tool) -> None:
    def definitions(source: str, *flags: str) -> Mapping[str, str]:
        data = compiled(source, tmp_path, tool(name), "-O2", *flags)
        return weak_definitions(data, {"weak_one", "weak_two", "weak_data", "common_one"}, "source.o")

    first = definitions(WEAK_SOURCE, "-DNUMBER=2")
    moved = definitions('const char *before(void) { return "more"; }' + WEAK_SOURCE, "-DNUMBER=2")
    assert moved == first, "where in the object they lie makes no difference"
    other = definitions(WEAK_SOURCE, "-DNUMBER=3")
    assert {key for key in first if first[key] != other[key]} == {"weak_one"}
    renamed = definitions(WEAK_SOURCE.replace("other", "another"), "-DNUMBER=2")
    assert {key for key in first if first[key] != renamed[key]} == {"weak_one"}
    assert definitions("int common_one;", "-fcommon") == {"common_one": SHARED}
    assert definitions("int common_one;", "-fcommon", "-flto") == {"common_one": SHARED}
    assert set(definitions(WEAK_SOURCE, "-DNUMBER=2", "-flto").values()) == {MERGED}


def test_damaged_objects_with_weak_symbols_are_refused_or_read(tmp_path: Path, tool: Tool) -> None:
    data = compiled(WEAK_SOURCE, tmp_path, tool("arm-none-eabi-gcc"), "-DNUMBER=2")
    codes = [refusal(data[:at] + b"\xff" + data[at + 1 :], weak_one_and_two) for at in range(0, len(data), 5)]
    assert len(codes) - codes.count("") > 10


def test_big_endian_objects(tmp_path: Path, tool: Tool) -> None:
    data = compiled(OBJECT_SOURCE, tmp_path, tool("arm-none-eabi-gcc"), "-O0", "-mbig-endian")
    assert object_symbols(data, "source.o").defined == {"defined", "data", "user", "common_or_bss"}


def test_objects_of_tvm_agree_with_nm(shared: Path, tmp_path: Path, tool: Tool) -> None:
    tool("arm-none-eabi-gcc")
    checked = 0
    for archive in archives(shared):
        for name, data in members(archive, ".o").items():
            found, expected = object_symbols(data, name), nm(data, tmp_path)
            assert (found.defined, found.weak, found.declared) == (expected.defined, expected.weak, expected.declared)
            checked += 1
    assert checked == 2


def test_files_that_are_not_relocatable_objects(tmp_path: Path, tool: Tool) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    subprocess.run([tool("gcc"), str(tmp_path / "main.c"), "-o", str(tmp_path / "main")], check=True)
    program = (tmp_path / "main").read_bytes()
    for data, code in [
        (b"", "object-not-elf"),
        (b"\xcf\xfa\xed\xfe" + bytes(100), "object-not-elf"),
        (program, "object-not-relocatable"),
        (b"\x7fELF", "object-damaged"),
    ]:
        with raises(InputFileError, code, at="a.o"):
            object_symbols(data, "a.o")


def test_damaged_objects_are_refused_or_read(tmp_path: Path, tool: Tool) -> None:
    data = compiled(OBJECT_SOURCE, tmp_path, tool("arm-none-eabi-gcc"), "-O0")
    for length in range(0, len(data), 7):
        with pytest.raises(InputFileError):
            object_symbols(data[:length], "a.o")
    codes = [
        refusal(data[:at] + bytes([value]) + data[at + 1 :])
        for at in range(0, len(data), 3)
        for value in (0x00, 0x7F, 0xFF)
    ]
    assert len(codes) - codes.count("") > 20
    assert set(codes) <= {"", "object-not-elf", "object-not-relocatable", "object-damaged"}


def weak_one_and_two(data: bytes, where: str) -> Mapping[str, str]:
    return weak_definitions(data, {"weak_one", "weak_two"}, where)


def refusal(data: bytes, read: Callable[[bytes, str], object] = object_symbols) -> str:
    try:
        read(data, "a.o")
    except InputFileError as error:
        return error.code
    return ""


def test_object_with_a_billion_sections_is_refused_quickly() -> None:
    header = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 1, 40, 1, 0, 0, 52, 0, 52, 0, 0, 40, 0, 0)
    section = struct.pack("<10I", 0, 0, 0, 0, 0, 2**30, 0, 0, 0, 0)  # e_shnum is 0: sh_size of the first one counts
    with raises(InputFileError, "object-damaged"):
        object_symbols(header + section, "a.o")
