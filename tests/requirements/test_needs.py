"""What code needs of a library: no file less than a linker asks for, and few more."""

from __future__ import annotations

import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.cli.invocation import run
from mlfbuild.requirements.library_index import names_like
from mlfbuild.requirements.needs import Needs, needed, needs_key
from mlfbuild.requirements.types import Source
from support.cmsis_nn_source import CORES, TVM_ARCHIVE, Linker, cmsis_nn_source, public_functions, self_contained


def library(files: Mapping[str, str], **changes: object) -> Source:
    """A library whose sources are its C, C++ and assembler files, with headers in ``include``."""
    contents = {path: text.encode() for path, text in sorted(files.items())}
    sources = tuple(path for path in contents if path.endswith((".c", ".cpp", ".cxx", ".S")))
    return replace(Source("lib", "1", contents, sources, ("include",)), **changes)  # type: ignore[arg-type]


def taken(files: Mapping[str, str], code: str, **changes: object) -> list[str]:
    return list(needed(library(files, **changes), [code.encode()]).files)


A = "int a(void) { return 1; }\n"
B = "int b(void) { return 2; }\n"


def test_only_what_is_called_is_taken() -> None:
    assert taken({"a.c": A, "b.c": B}, "int main(void) { return a(); }") == ["a.c"]


def test_calls_of_taken_files_count() -> None:
    files = {"a.c": A, "b.c": "int b(void) { return a(); }", "c.c": "int c(void) { return b(); }"}
    assert taken(files, "int main(void) { return b(); }") == ["a.c", "b.c"]


def test_a_name_that_nobody_defines_is_left_to_the_linker() -> None:
    assert taken({"a.c": A}, "int main(void) { return printf(1) + a(); }") == ["a.c"]
    assert taken({"a.c": A}, "int main(void) { return printf(1); }") == []


def test_a_prototype_alone_needs_nothing() -> None:
    assert taken({"a.c": A, "b.c": "int a(void);\n" + B}, "int main(void) { return b(); }") == ["b.c"]


def test_headers_are_taken_with_those_that_they_include() -> None:
    files = {
        "a.c": '#include "own.h"\n' + A,
        "own.h": "#include <public.h>",
        "include/public.h": '#include "inner/deep.h"',
        "include/inner/deep.h": "#include <stdint.h>",
        "include/unused.h": "",
    }
    assert taken(files, "int main(void) { return a(); }") == [
        "a.c",
        "include/inner/deep.h",
        "include/public.h",
        "own.h",
    ]


def test_headers_that_the_code_includes_are_taken() -> None:
    files = {"include/types.h": "struct s;", "types.h": ""}
    assert taken(files, "#include <types.h>") == ["include/types.h"]


def test_an_inline_function_of_a_header_counts_only_where_it_is_reached() -> None:
    header = "static inline int used(void) { return a(); }\nstatic inline int unused(void) { return b(); }\n"
    files = {"include/h.h": header, "a.c": A, "b.c": B}
    assert taken(files, '#include "h.h"\nint main(void) { return used(); }') == ["a.c", "include/h.h"]
    assert taken(files, '#include "h.h"\nint main(void) { return 0; }') == ["include/h.h"]


def test_a_macro_that_names_a_function_counts_where_it_is_used() -> None:
    files = {"include/h.h": "#define CALL(x) \\\n  (a() + (x))\n#define OTHER b()", "a.c": A, "b.c": B}
    assert taken(files, '#include "h.h"\nint main(void) { return CALL(1); }') == ["a.c", "include/h.h"]


def test_a_macro_that_pastes_a_name_reaches_all_that_it_can_make() -> None:
    files = {
        "include/h.h": "#define KERNEL(bits) kernel_ ## bits ## _dsp",
        "k8.c": "int kernel_8_dsp(void) { return 0; }",
        "k16.c": "int kernel_16_dsp(void) { return 0; }",
        "other.c": "int kernel_8_mve(void) { return 0; }",
    }
    assert taken(files, '#include "h.h"\nint main(void) { return KERNEL(8)(); }') == ["include/h.h", "k16.c", "k8.c"]
    joined = files | {"include/h.h": "#define JOIN(a, b) a ## b"}
    assert taken(joined, '#include "h.h"\nint main(void) { return JOIN(kernel_8, _mve)(); }') == [
        "include/h.h",
        "other.c",
    ]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("arm_*_s8", "arm_add_s8", True),
        ("arm_*_s8", "arm_add_s16", False),
        ("arm_*_s8", "arm_s8", False),
        ("*_mid_*", "a_mid_b", True),
        ("*_mid_*_mid_*", "a_mid_b", False),
        ("one*one", "one", False),
        ("two", "two", True),
        ("two", "twofold", False),
        ("**", "addmul", True),
        ("**", "add16", True),
        ("**", "subtract", False),
    ],
)
def test_patterns_of_pasted_names(pattern: str, name: str, fits: bool) -> None:
    assert bool(list(names_like([pattern], [name], {"add", "mul"}))) == fits


def test_hostile_macros_take_no_time() -> None:
    name = "a" * 100_000
    joined = " ## a ## ".join(f"p{number}" for number in range(200))
    parameters = ", ".join(f"p{number}" for number in range(200))
    text = (
        f"#define M({parameters}) {joined} ## b\n#define J(x, y) x ## y\nint {name}(void) {{ return M() + J(a, b); }}\n"
    )
    start = time.process_time()
    assert taken({"a.c": text}, f"int x = {name}();") == ["a.c"]
    assert time.process_time() - start < 5


def test_a_pasted_name_may_be_that_of_an_inline_function() -> None:
    header = "static inline int kernel_8(void) { return a(); }\n#define KERNEL(bits) kernel_ ## bits\n"
    files = {"include/h.h": header, "a.c": A, "b.c": B}
    assert taken(files, '#include "h.h"\nint main(void) { return KERNEL(8)(); }') == ["a.c", "include/h.h"]


def test_functions_that_a_header_s_macro_defines_are_found() -> None:
    header = "#define ALIAS(name, target) int name(void) { return target(); }"
    files = {"include/h.h": header, "a.c": A, "b.c": '#include "h.h"\nALIAS(b, a)\n', "c.c": "int c;"}
    assert taken(files, "int main(void) { return b(); }") == ["a.c", "b.c", "include/h.h"]


def test_every_branch_counts() -> None:
    text = "#if defined(DSP)\nint f(int x) { return a();\n#else\nint f(void) { return b();\n#endif\n}\n"
    files = {"f.c": text, "a.c": A, "b.c": B, "g.c": "int g;"}
    assert taken(files, "int main(void) { return f(); }") == ["a.c", "b.c", "f.c"]


def test_all_files_that_define_a_name_are_taken() -> None:
    files = {
        "m4.c": "#ifdef M4\nint f(void) { return 4; }\n#endif",
        "m0.c": "#ifndef M4\nint f(void);int f(void){}\n#endif",
    }
    assert taken(files, "int main(void) { return f(); }") == ["m0.c", "m4.c"]


def test_a_static_function_of_the_same_name_elsewhere_is_another() -> None:
    inline = "#define INLINE static inline\n"
    files = {
        "include/h.h": inline,
        "a.c": "static int help(void) { return 0; } int a(void) { return help(); }",
        "b.c": "#include <h.h>\nINLINE int a2(void) { return 1; } int b(void) { return a2(); }",
        "c.c": "int help(void) { return 1; }",
        "d.c": "int a2(void) { return 1; }",
    }
    assert taken(files, "int main(void) { return a() + b(); }") == ["a.c", "b.c", "include/h.h"]


def test_tables_are_taken_by_their_names() -> None:
    files = {"table.c": "const short sigmoid_table[2] = {1, 2};", "use.c": "int f(void) { return sigmoid_table[0]; }"}
    assert taken(files, "int main(void) { return f(); }") == ["table.c", "use.c"]
    jump = {"jump.c": "int (*const jump[])(void) = {a};", "a.c": A, "b.c": B}
    assert taken(jump, "int main(void) { return jump[0](); }") == ["a.c", "jump.c"]


def test_an_included_source_belongs_to_who_includes_it() -> None:
    body = "int a(void) { return 0; }\nint other(void) { return b(); }\nstatic int idle(void) { return c(); }\n"
    files = {"a.c": '#include "parts/body.inc"', "parts/body.inc": body, "b.c": B, "c.c": "int c(void) { return 3; }"}
    assert taken(files, "int main(void) { return a(); }") == ["a.c", "b.c", "parts/body.inc"]


def test_an_include_that_a_macro_names_may_be_any_header() -> None:
    files = {"a.c": "#include CONFIG\n" + A, "include/x.h": "", "y.h": "", "z.txt": ""}
    assert taken(files, "int main(void) { return a(); }") == ["a.c", "include/x.h", "y.h"]


def test_assembler_is_taken_by_its_symbols() -> None:
    assembler = '/* b */\n#include "regs.h"\n  .global fast, faster\nfast:\n  bl a @ b\n'
    files = {"fast.S": assembler, "regs.h": "", "a.c": A, "b.c": B}
    assert taken(files, "int main(void) { return faster(); }") == ["a.c", "fast.S", "regs.h"]
    inline = {"i.c": 'int i(void) { __asm("bl a"); return 0; }', "a.c": A}
    assert taken(inline, "int main(void) { return i(); }") == ["a.c", "i.c"]


def test_cpp_is_taken_by_the_last_part_of_a_name() -> None:
    files = {
        "n.cpp": 'namespace n { int f() { return a(); } }\nextern "C" int plain() { return 0; }',
        "k.cxx": "struct K { K(); };\nK::K() {}\n",
        "a.c": A,
    }
    assert taken(files, "int main() { return n::f(); }") == ["a.c", "n.cpp"]
    assert taken(files, "int main() { K k; }") == ["k.cxx"]


def test_licences_are_taken_always_and_public_headers_where_asked() -> None:
    files = {"a.c": A, "LICENSE": "", "include/api.h": "", "include/README": "", "inner.h": ""}
    licensed = {"license_files": ("LICENSE",)}
    assert taken(files, "int x;", **licensed) == ["LICENSE"]
    assert taken(files, "int x;", **licensed, public_headers=True) == ["LICENSE", "include/api.h"]


def test_the_rest_of_the_library_is_as_it_was() -> None:
    whole = library({"a.c": A, "b.c": B, "include/h.h": "", "more/m.h": ""}, include_dirs=("include", "more"))
    part = needed(replace(whole, license="MIT", compile_options=("-O3",)), [b'#include "m.h"\nint x = a();'])
    assert (part.sources, part.include_dirs) == (("a.c",), ("more",))
    assert (part.name, part.version, part.license, part.compile_options) == ("lib", "1", "MIT", ("-O3",))


def test_the_key_tells_what_decides() -> None:
    one, code = library({"a.c": A, "b.c": B}), [b"int x = a();", b"int y;"]
    key = needs_key(one, code)
    assert key == needs_key(one, code[::-1])
    assert key != needs_key(one, [b"int x = b();", b"int y;"])
    assert key != needs_key(library({"a.c": A, "b.c": B + " "}), code)
    assert key != needs_key(replace(one, sources=("a.c",)), code)
    assert key != needs_key(replace(one, compile_options=("-O2",)), code)


# CMSIS-NN ------------------------------------------------------------------------------------------------------------


def tvm_code(shared: Path) -> list[bytes]:
    """The generated sources of an archive of TVM 0.14 that calls CMSIS-NN."""
    with tarfile.open(shared / "archives" / TVM_ARCHIVE) as archive:
        members = [member for member in archive.getmembers() if member.name.endswith((".c", ".h"))]
        return [file.read() for member in members if (file := archive.extractfile(member)) is not None]


def test_a_network_of_tvm_needs_a_part_of_the_stand_in(shared: Path, stub_cmsis_nn_4: Path) -> None:
    part = needed(cmsis_nn_source(stub_cmsis_nn_4), tvm_code(shared))
    names = {Path(path).stem for path in part.sources}
    assert {"arm_convolve_wrapper_s8", "arm_nn_convolve_direct_s8", "arm_nn_softmax_common_s8"} <= names
    assert not names & {"arm_max_pool_s8", "arm_elementwise_add_s8", "arm_relu_q7", "arm_reshape_s8"}
    assert "LICENSE.txt" in part.files and "Include/Internal/arm_nn_compiler.h" in part.files


@pytest.mark.parametrize("core", CORES)
def test_each_function_of_the_stand_in_links_alone(
    core: str, stub_cmsis_nn_7: Path, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    check_each_function(stub_cmsis_nn_7, core, tmp_path, tool, step=4)


def test_a_network_of_tvm_needs_a_third_of_the_real_library(shared: Path, cmsis_nn_4: Path) -> None:
    """The linker keeps 20 files for a Cortex-M0, 21 for a Cortex-M4, 18 for a Cortex-M55: together all of these."""
    whole, start = cmsis_nn_source(cmsis_nn_4), time.monotonic()
    part = needed(whole, tvm_code(shared))
    assert time.monotonic() - start < 5  # a third of a second on a quiet machine
    assert len(part.sources) == 23 and len(whole.sources) == 72


def test_what_is_taken_of_the_real_library_computes_what_is_right(
    shared: Path, cmsis_nn_4: Path, tmp_path: Path
) -> None:
    part = needed(cmsis_nn_source(cmsis_nn_4), tvm_code(shared))
    archive = self_contained(shared / "archives" / TVM_ARCHIVE, part, tmp_path / "kws.tar")
    vectors, outputs = shared / "archives" / "kws_int8-cmsisnn_m4.npz", tmp_path / "out.npz"
    assert run(["run", str(archive), "--board", "mps2-an386", "--inputs", str(vectors), "-o", str(outputs)]) == 0
    with np.load(vectors) as expected, np.load(outputs) as got:
        assert np.array_equal(got["Identity"], expected["out0"])


@pytest.mark.sweep
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("version", ["cmsis_nn_4", "cmsis_nn_7"])
def test_each_function_of_the_real_library_links_alone(
    version: str, core: str, request: pytest.FixtureRequest, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    check_each_function(request.getfixturevalue(version), core, tmp_path, tool, step=1)


def check_each_function(folder: Path, core: str, build: Path, tool: Callable[[str], str], step: int) -> None:
    """Link each function of the library, or every ``step``-th and all together, with what it needs alone."""
    source = cmsis_nn_source(folder)
    linker = Linker(tool("arm-none-eabi-gcc"), core, folder, build)
    linker.compile(source.sources)
    functions, needs = public_functions(folder), Needs(source)
    defined = [name for name in functions if needs.of([f"int x = {name};".encode()]).sources]
    assert len(defined) > 0.9 * len(functions)  # the rest is declared, and nobody's
    for group in [*([name] for name in defined[::step]), defined]:
        part = needs.of([f"int x = {name};".encode() for name in group])
        result = linker.link(group, part.sources)
        assert result.returncode == 0, f"{group}: {result.stderr}"
    assert linker.link(defined[:1], ()).returncode != 0  # that is what a missing file does
