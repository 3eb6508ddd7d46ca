"""Print the checks of pointers at the beginning of a function, and the constants that it returns for each cause.

As in TVM's interface, 0 is success and errors are negative. A cause has the same number in every model; -2 is that of a
busy shared workspace (``cgen/sharing``), which archives of other compilers return too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.library import brief
from mlfbuild.library.cgen import joined

_NULL_POINTER, _MISALIGNED_POINTER, _WRONG_ARGUMENTS, _NPU_FAILED = -1, -3, -4, -5
ARGUMENTS_RESULT = f"{_WRONG_ARGUMENTS}; /* the number of arguments is wrong */"
"""The result of a packed function for a wrong number of tensors; no header declares it."""


@dataclass(frozen=True)
class Pointer:
    """A pointer that the caller passes, and what it must be aligned to."""

    expression: str
    # 1 byte is always aligned, so that no test is printed for such a pointer.
    alignment: int
    """Bytes; 1 if every address is allowed."""


def null_result(model: str) -> str:
    """Return the name of the result for a pointer that is NULL."""
    return f"MLF_{model.upper()}_NULL_POINTER"


def misaligned_result(model: str) -> str:
    """Return the name of the result for a pointer that is not aligned."""
    return f"MLF_{model.upper()}_MISALIGNED_POINTER"


def failed_result(model: str) -> str:
    """Return the name of the result for an operator that another device could not compute."""
    return f"MLF_{model.upper()}_NPU_FAILED"


def print_result_macros(model: str, *, may_fail: bool = False) -> Iterator[str]:
    """Yield the definitions of the results of ``model``; ``may_fail`` for one with operators of another device."""
    functions = f'the functions of module "{model}"'
    yield brief(f"result of {functions}: a pointer is NULL") + f"\n#define {null_result(model)} ({_NULL_POINTER})"
    about = brief(f"result of {functions}: a pointer is not aligned for its type")
    yield f"{about}\n#define {misaligned_result(model)} ({_MISALIGNED_POINTER})"
    if may_fail:
        about = brief(f"result of {functions}: the NPU or its driver reported an error")
        yield f"{about}\n#define {failed_result(model)} ({_NPU_FAILED})"


def results_comment(model: str, *others: str) -> list[str]:
    r"""Return the lines of a header's comment about a function that returns 0, an error or one of ``others``.

    Names are those of ``print_result_macros``, in the style of Doxygen's ``\return``, one on a line. ``others`` are
    further results of the function.
    """
    names = [null_result(model), misaligned_result(model), *others]
    return [rf"\return 0, {names[0]},", *(f"        {name}," for name in names[1:-1]), f"        or {names[-1]}"]


def print_null_check(model: str, expressions: Sequence[str]) -> Iterator[str]:
    """Yield the statement that returns if one of ``expressions`` is NULL.

    Nothing is printed for an empty list.
    """
    yield from _refusal([f"{expression} == NULL" for expression in expressions], null_result(model))


def print_checks(model: str, pointers: Sequence[Pointer]) -> Iterator[str]:
    """Yield the statements that return if one of ``pointers`` is NULL or not aligned.

    All tests for NULL come before those for alignment, so that the result names the first cause.
    """
    yield from print_null_check(model, [pointer.expression for pointer in pointers])
    aligned = [pointer for pointer in pointers if pointer.alignment > 1]
    # ``uintptr_t``, because C does not define the remainder of a pointer.
    tests = [f"((uintptr_t){each.expression} % {each.alignment}u) != 0u" for each in aligned]
    yield from _refusal(tests, misaligned_result(model))


def _refusal(tests: Sequence[str], result: str) -> Iterator[str]:
    if tests:
        condition = joined([f"({test})" for test in tests] if len(tests) > 1 else tests, " ||", 8, len("    if () {"))
        yield f"    if ({condition}) {{"
        yield f"        return {result};"
        yield "    }"
