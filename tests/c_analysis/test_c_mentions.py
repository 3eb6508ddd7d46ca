"""Which names a C file mentions: all that any compiler could take from it, by where they stand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from mlfbuild.c_analysis.mentions import COMPUTED, Include, c_mentions


def test_names_stand_by_the_function_that_mentions_them() -> None:
    found = c_mentions("int f(int x) { return g(x) + TABLE[0]; }\nint h(void);\nstatic int i(void) { return f(1); }\n")
    assert {"g", "TABLE"} <= found.functions["f"] and "f" in found.functions["i"]
    assert found.functions.keys() == {"f", "i"} and found.names == frozenset()


def test_what_is_always_compiled() -> None:
    found = c_mentions(
        "int (*const table[])(void) = {one, two};\nint *p = &three;\nstruct s { four_t x; };\nint five;\n"
    )
    assert {"one", "two", "three", "four_t"} <= found.names and "five" not in found.names


def test_macros_hold_names_without_their_parameters() -> None:
    found = c_mentions("#define CALL(x, y) \\\n  f(x) + y\n#define VALUE g\n#define VALUE h\n").macros
    assert found["CALL"].names == {"f"} and found["CALL"].is_function
    assert found["VALUE"].names == {"g", "h"} and not found["VALUE"].is_function


def test_pasted_names_are_patterns() -> None:
    found = c_mentions("#define NAME(a, b) arm_##a##_s8(b) + x ## b\n#define OBJECT one ## two\n").macros
    assert found["NAME"].pasted == ("arm_*_s8", "x*") and found["OBJECT"].pasted == ("onetwo",)


def test_includes_in_order_and_in_all_branches() -> None:
    found = c_mentions('#include <a.h>\n#if 0\n# include "b/c.h"\n#endif\n#include NAME\n/* #include "d.h" */\n')
    assert found.includes == (Include("a.h", False), Include("b/c.h", True), Include(COMPUTED, False))


def test_branches_that_open_one_body_twice() -> None:
    text = "#ifdef A\nint f(int x) {\n  a();\n#else\nint f(void) {\n  b();\n#endif\n  c();\n}\nint g(void) { d(); }\n"
    found = c_mentions(text).functions
    assert {"a", "b", "c"} <= found["f"] and found["g"] == {"d"}


def test_linkage_blocks_are_no_bodies() -> None:
    found = c_mentions(
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(void) { return a(); }\n}\nint g(void) { b(); }\n'
    )
    assert found.functions == {"f": {"return", "a"}, "g": {"b"}}


def test_inline_assembly_mentions_what_its_text_has() -> None:
    assert "callee" in c_mentions('void f(void) { __asm("bl callee"); }').functions["f"]


@given(st.text(alphabet="{}()[];,=\"'#/*\\\n aif<:"))
def test_any_text_is_taken(text: str) -> None:
    c_mentions(text)
    c_mentions(text, cplusplus=True)


@pytest.mark.parametrize(
    "piece",
    ["{", "}", "(", "int f(", "a{}", "#if X\n", "#if X\n{\n#else\n", "#define A(x) x ## y\n", "namespace a {", "a,",
     "=", "#else\n", '"a', "#include A\n", "int f(void) {}\n"],
)  # fmt: skip
def test_hostile_text_takes_linear_time(piece: str) -> None:
    def seconds(count: int) -> float:
        text = piece * (count // len(piece))
        start = time.process_time()
        c_mentions(text)
        return time.process_time() - start

    small, large = seconds(10_000), seconds(100_000)
    assert large < 40 * small + 0.5
