"""One declaration of C or C++ at file scope: the names that it declares, and their linkage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.c_analysis.c_text import Token

_ATTRIBUTES = {"__attribute__", "__attribute", "__declspec", "__asm__", "asm", "__asm", "alignas", "_Alignas"}
_TAGS = {"struct", "union", "enum", "class"}
# An identifier token that is one of these cannot be the name that a declarator introduces.
_NO_NAMES = {
    "void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "bool", "const",
    "volatile", "restrict", "__restrict", "static", "extern", "inline", "__inline", "__inline__", "typedef",
    "register", "auto", "constexpr", "thread_local", "_Thread_local", "noexcept", "override", "final", "_Noreturn",
}  # fmt: skip
# Words that C++ allows between the parameters of a function and its body: `int f() const noexcept {`.
_BEHIND = {"const", "noexcept", "override", "final", "volatile"}
_OPENING, _CLOSING = frozenset("(["), frozenset(")]")


@dataclass(frozen=True)
class Linkage:
    """The linkage of declarations in one block: ``extern "C" {``, ``namespace n {``, or the whole file."""

    cplusplus: bool
    """Whether names have C++ linkage."""
    space: str = ""
    """The enclosing namespaces, such as ``a::b::``."""
    anonymous: bool = False
    language: bool | None = None
    """Whether the file is C++; ``None`` if it is the same as ``cplusplus``."""

    @property
    def is_cplusplus(self) -> bool:
        """Whether the file is C++, regardless of the linkage in this block.

        In ``extern "C" {`` names have C linkage, but the rules of C++ still hold for ``const`` and ``inline``.
        """
        return self.cplusplus if self.language is None else self.language

    def block(self, tokens: Sequence[Token]) -> Linkage | None:
        """Return the linkage in the block that begins after ``tokens``, or ``None`` if it is another kind of block.

        ``tokens`` are those between the end of the last statement and the ``{``: ``extern "C"``, ``namespace n`` or
        ``inline namespace n``. The blocks of these contain declarations at file scope; all others are bodies or values.
        """
        words = [token.text for token in tokens]
        # `extern "C++" {` inside of `extern "C" {` is valid and gives names C++ linkage again.
        if len(words) == 2 and words[0] == "extern" and tokens[1].kind == "string":
            return Linkage(words[1] != '"C"', self.space, self.anonymous, self.is_cplusplus)
        if words[:1] == ["inline"]:
            words = words[1:]
        if words[:1] == ["namespace"] and self.is_cplusplus:
            return Linkage(self.cplusplus, self.space + "".join(words[1:]) + "::", len(words) == 1, True)
        return None


class Declaration:
    """The tokens of a declaration at file scope, up to its ``;`` or, with ``body``, to a ``{``.

    ``tokens`` are those of ``c_text`` without directives. ``attributes`` are the words inside of attributes, ``tokens``
    all others, and ``top`` the indices of those outside of parentheses, which decide what the declaration means.
    """

    def __init__(self, tokens: Sequence[Token], linkage: Linkage, *, body: bool) -> None:
        # Attributes may stand anywhere in a declaration and have parentheses of their own, which would otherwise look
        # like the parameters of a function.
        self.attributes, self.tokens = _without_attributes(tokens)
        self.linkage = linkage
        self.body = body
        # `extern "C" int f();` has the linkage of a block for one declaration, without braces. The namespace is dropped
        # with it: the symbol of a function with C linkage does not contain it.
        if len(self.tokens) > 1 and self.tokens[0].text == "extern" and self.tokens[1].kind == "string":
            self.linkage = Linkage(self.tokens[1].text != '"C"', language=linkage.is_cplusplus)
        self.top = list(_top_level(self.tokens))

    @property
    def is_function(self) -> bool:
        """Whether the body that follows is that of a function.

        The last word outside of parentheses is then ``)``: ``int f(void) {`` against ``int a[] = {`` or ``struct s {``.
        """
        words = [self.tokens[index].text for index in self.top]
        while words and words[-1] in _BEHIND and self.linkage.is_cplusplus:
            words.pop()
        return bool(words) and words[-1] == ")" and "=" not in words

    def has(self, *words: str) -> bool:
        """Return whether the declaration contains one of ``words`` outside of parentheses.

        Specifiers of parameters, as in ``void f(register int a)``, are inside parentheses and do not count.
        """
        return any(self.tokens[index].text in words for index in self.top)


def declared_names(declaration: Declaration) -> Iterator[tuple[str, str]]:
    """Yield (kind, name) for each name that the declaration adds to file scope.

    The kinds are ``defined``, ``declared``, ``local``, ``weak`` (perhaps only declared) and ``weakly defined``.
    """
    # None of these declares an object or function that a linker could see.
    if declaration.has("typedef", "using", "friend"):
        return
    for position, declarator in enumerate(_declarators(declaration)):
        name, is_function = _name_of(declaration, declarator, first=position == 0)
        if not name:
            continue
        initialised = any(declaration.tokens[index].text == "=" for index in declarator)
        # `int a;` at file scope is a tentative definition (C99 6.9.2), so only `extern` without a value merely
        # declares.
        defines = declaration.body if is_function else initialised or not declaration.has("extern")
        # `void f(void) __attribute__((alias("g")));` looks like a declaration, but the object file defines f.
        defines = defines or bool(declaration.attributes & {"alias", "__alias__"})
        yield from _kinds(declaration, _spelled(name, declaration, is_function), is_function, defines)


def _spelled(name: str, declaration: Declaration, is_function: bool) -> str:
    if not declaration.linkage.cplusplus:
        # The symbol of a name with C linkage is the same in every namespace.
        return name.rpartition("::")[2]
    # Overloads differ in their arguments, which are not parsed: "()" stands for all of them. The exact symbol depends
    # on types behind typedefs and templates, which only a whole parser knows.
    return declaration.linkage.space + name + ("()" if is_function else "")


def _kinds(declaration: Declaration, name: str, is_function: bool, defines: bool) -> Iterator[tuple[str, str]]:
    cplusplus = declaration.linkage.is_cplusplus
    inline = is_function and declaration.has("inline", "__inline", "__inline__", "constexpr")
    # In C++ a const object at file scope has internal linkage; in C it is external.
    constant = not is_function and cplusplus and _is_constant(declaration) and not declaration.has("extern")
    # First, because `static inline` and names in an anonymous namespace are local whatever else they are.
    if declaration.has("static") or declaration.linkage.anonymous or constant:
        yield "local", name
    elif inline and not cplusplus and not declaration.has("extern"):
        yield "local", name  # not an external definition (C99 6.7.4)
    # Compilers emit these as COMDAT or weak symbols in each object that uses them, and linkers keep one.
    elif (inline and cplusplus) or declaration.has("template") or declaration.attributes & {"weak", "__weak__"}:
        yield "weak", name
        if defines:
            yield "weakly defined", name
    else:
        yield ("defined" if defines else "declared"), name


def _is_constant(declaration: Declaration) -> bool:
    """Return whether the object itself is ``const``, not only the object to which it points."""
    texts = [declaration.tokens[index].text for index in declaration.top]
    stars = [position for position, text in enumerate(texts) if text == "*"]
    # `const char *p` is a variable; in `char *const p` the word after the last star belongs to the object.
    return any(word in texts[(stars[-1] if stars else 0) :] for word in ("const", "constexpr"))


# Tokens --------------------------------------------------------------------------------------------------------------


def _without_attributes(tokens: Sequence[Token]) -> tuple[frozenset[str], list[Token]]:
    """Return the words in attributes, and the tokens outside of them."""
    words: set[str] = set()
    kept: list[Token] = []
    depth = 0  # open parentheses of an attribute
    begins = False
    for token in tokens:
        if depth or (begins and token.text == "("):
            depth += (token.text == "(") - (token.text == ")")
            words.add(token.text)
            begins = False
            continue
        begins = token.kind == "identifier" and token.text in _ATTRIBUTES
        if not begins:
            kept.append(token)
    return frozenset(words), kept


def _top_level(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the indices of the tokens outside of parentheses and brackets, including these."""
    depth = 0
    for index, token in enumerate(tokens):
        closes = token.kind == "punctuation" and token.text in _CLOSING
        # An excess `)` must not make the depth negative: the text may be invalid, and everything after it would be
        # lost.
        depth -= closes and depth > 0
        if depth == 0:
            yield index
        depth += token.kind == "punctuation" and token.text in _OPENING


def _declarators(declaration: Declaration) -> Iterator[list[int]]:
    """Yield the indices of each declarator's tokens at top level; the first has the specifiers before it."""
    found: list[int] = []
    for index in declaration.top:
        if declaration.tokens[index].text == ",":
            yield found
            found = []
        else:
            found.append(index)
    if found:
        yield found


def _name_of(declaration: Declaration, declarator: Sequence[int], *, first: bool) -> tuple[str, bool]:
    """Return the name in a declarator, empty if there is none, and whether it is the name of a function."""
    tokens = declaration.tokens
    indices = _before_value(tokens, declarator)
    words = [tokens[index].text for index in indices]
    while words and words[-1] in _BEHIND and declaration.linkage.is_cplusplus:
        words.pop()
        indices.pop()
    if words[-2:] == ["(", ")"]:
        return _called(tokens, indices, words)
    # Top level keeps only the brackets themselves, so each dimension of an array is exactly these two tokens.
    while words[-2:] == ["[", "]"]:
        del words[-2:], indices[-2:]
    if words[-2:] == ["(", ")"]:
        return _called(tokens, indices, words)
    named = [index for index in indices if tokens[index].kind == "identifier"]
    if not named or tokens[indices[-1]].text in _NO_NAMES or tokens[indices[-1]].kind != "identifier":
        return "", False
    # Only the first declarator shares its tokens with the specifiers; after a comma, a lone name is a name.
    if first and not _has_type(words):
        return "", False
    return _qualified(tokens, indices, len(indices) - 1), False


def _before_value(tokens: Sequence[Token], declarator: Sequence[int]) -> list[int]:
    """Return the indices before an initialiser."""
    kept: list[int] = []
    for index in declarator:
        if tokens[index].text == "=":
            break
        kept.append(index)
    return kept


def _has_type(words: Sequence[str]) -> bool:
    """Return whether there is a type before the last word: ``struct point;`` and ``unsigned;`` declare no object."""
    # `struct { int a; } name;` has a type without a tag, which stands here as the braces alone.
    kept = [word for word in words[:-1] if word != "{}"]
    for position, word in enumerate(kept):
        if word in _TAGS:
            return "{}" in words or len(kept) > position + 1
    return bool(kept) and kept[-1] != "extern"


def _called(tokens: Sequence[Token], indices: Sequence[int], words: Sequence[str]) -> tuple[str, bool]:
    """Return the name before the last parentheses or in them, and whether it is the name of a function.

    The forms are ``name(...)``, ``(*name)(...)``, ``(*name(...))(...)`` and ``int (*name)``.
    """
    before = len(words) - 3
    if before < 0:
        return "", False
    if words[before] == ")":
        return _in_parentheses(tokens[indices[before - 1] + 1 : indices[before]])
    if words[before] in _NO_NAMES or words[before] == "*":  # int (*name), int (name)
        return _in_parentheses(tokens[indices[-2] + 1 : indices[-1]])
    if tokens[indices[before]].kind != "identifier" or before == 0:
        return "", False
    return _qualified(tokens, indices, before), True


def _in_parentheses(inner: Sequence[Token]) -> tuple[str, bool]:
    # `(*name)` is a pointer to a function, thus an object; `(name)` and `(*name(...))` are functions.
    pointer = any(token.text == "*" for token in inner[:1])
    for position, token in enumerate(inner):
        if token.kind == "identifier" and token.text not in _NO_NAMES:
            called = position + 1 < len(inner) and inner[position + 1].text == "("
            return token.text, called or not pointer
    return "", False


def _qualified(tokens: Sequence[Token], indices: Sequence[int], position: int) -> str:
    """Return the name at ``position`` with its classes and namespaces, such as ``A::f``."""
    name = tokens[indices[position]].text
    while position >= 3 and tokens[indices[position - 1]].text == tokens[indices[position - 2]].text == ":":
        position -= 3
        name = f"{tokens[indices[position]].text}::{name}"
    return name
