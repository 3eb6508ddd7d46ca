"""Generate the page on the command line: verbs and options from click, exit codes from the error classes."""

from __future__ import annotations

import click

from mlfbuild.cli.app import SECTIONS, app, verb_called
from mlfbuild.core.errors import MlfError
from mlfbuild_reference.markdown import code, page, paragraphs, prose

_ABOUT = (
    "`mlfbuild VERB --help` explains each verb. Results go to stdout, diagnostics to stderr. You can give a shared "
    "option before or after the verb; if it does not apply to the verb, it is refused. Every verb accepts `-C`, `-v` "
    "and `-q`, and all but `watch` and `completion` accept `--format`."
)
_CODES = (
    "[Troubleshooting](../troubleshooting.md#exit-codes) explains the codes. Errors in Python are classes of "
    "`mlfbuild.core`:"
)
_EVERYWHERE = ("-C", "-v", "-q")


def command_line_page() -> str:
    """Return the page ``reference/command-line.md``."""
    shared = {parameter.name: parameter for parameter in app.params}
    parts = [
        _ABOUT,
        "## Shared options",
        _options(app.params),
    ]
    for title, verbs in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [_verb(verb_called(name), set(shared)) for name in verbs]
    parts += ["## Exit codes", _CODES, _exit_codes()]
    return page("The command line", "the verbs in `mlfbuild/cli` and the errors in `mlfbuild/core/errors.py`", *parts)


def _verb(verb: click.Command, shared: set[str | None]) -> str:
    # Use the settings of the command itself, because a verb keeps the help option that it creates first.
    context = click.Context(verb, info_name=f"mlfbuild {verb.name}", **app.context_settings)
    own = [parameter for parameter in verb.params if parameter.name not in shared]
    common = [parameter.opts[0] for parameter in verb.params if parameter.name in shared]
    usage = " ".join([context.command_path, *verb.collect_usage_pieces(context)])
    parts = [f"### `{verb.name}`", *([] if usage.endswith(" [OPTIONS]") else [code(usage)])]
    parts.append(paragraphs((verb.help or "").partition("\n\n")[0]))
    if any(isinstance(parameter, click.Option) for parameter in own):
        parts.append(_options(own))
    if not set(_EVERYWHERE) <= set(common):
        raise ValueError(f"{verb.name}: lacks an option that every verb has")
    rest = [name for name in common if name not in (*_EVERYWHERE, "--format")]
    return "\n\n".join([*parts, *([f"Shared: {', '.join(map(code, rest))}."] if rest else [])])


def _options(parameters: list[click.Parameter]) -> str:
    options = [option for option in parameters if isinstance(option, click.Option)]
    return "\n".join(f"- {_names(option)}: {_meaning(option)}" for option in options)


def _names(option: click.Option) -> str:
    if option.is_flag:
        return ", ".join(map(code, option.opts))
    value = option.metavar or f"[{'|'.join(getattr(option.type, 'choices', ['VALUE']))}]"
    return ", ".join(code(f"{name} {value}") for name in option.opts)


def _meaning(option: click.Option) -> str:
    notes = ["Required."] if option.required else []
    if option.show_default and option.default is not None:
        notes.append(f"Default: {option.default}.")
    return " ".join([prose(option.help or ""), *notes])


def _exit_codes() -> str:
    errors: dict[int, list[str]] = {}
    for error in sorted(MlfError.__subclasses__(), key=lambda each: each.__name__):
        errors.setdefault(error.exit_code, []).append(code(error.__name__))
    return "\n".join(f"- {number}: {', '.join(names)}" for number, names in sorted(errors.items()))
