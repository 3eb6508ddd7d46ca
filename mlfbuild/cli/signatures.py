"""The verbs for signatures of files: sign and verify-signature."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import FAILED, PASSED, show, show_json, show_result

_FILES = click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")


@verb("format")
@_FILES
@click.option("--key", type=FILE, required=True, metavar="KEY", help="Private key, or public key of ssh-agent.")
def sign(options: SharedOptions, files: tuple[Path, ...], key: Path) -> None:
    """Sign files with a key of ssh-keygen.

    The signature of FILE is written to FILE.sig. It is that of `ssh-keygen -Y sign -n mlfbuild`, in the format that Git
    uses for commits. FILE may be an archive, a bundle, a lock file or any other file. If the key has a passphrase and
    is not in ssh-agent, ssh-keygen asks for it in the terminal.
    """
    from mlfbuild.usecases import sign_files

    written = sign_files(files, key)
    value = [{"file": file, "signature": output} for file, output in zip(files, written, strict=True)]
    show_result(options, value, "\n".join(f"{output}: written" for output in written))


@verb("format")
@_FILES
@click.option("--signers", type=FILE, required=True, metavar="FILE", help="Allowed signers, as ssh-keygen reads them.")
@click.option("--identity", default="", metavar="ID", help="Accept only this signer, one of the allowed ones.")
def verify_signature(options: SharedOptions, files: tuple[Path, ...], signers: Path, identity: str) -> None:
    """Check that allowed signers have signed files.

    The exit status is 0 if each FILE has a signature FILE.sig by one of the allowed signers. The command does not parse
    FILE. The project key `trust` checks the archives of a build in the same way.
    """
    from mlfbuild.core import Trust
    from mlfbuild.usecases import refused_signatures, verify_signatures

    checks = verify_signatures(files, Trust(signers, identity))
    error = refused_signatures(checks)
    if options.json:
        show_json([{"file": check.file, "signer": check.signer} for check in checks])
    else:
        # A single refusal is the error of the command, and is not printed twice.
        shown = [each for each in checks if (each.error is not error if each.error else not options.quiet)]
        for check in shown:
            show(check.text, {check.text: PASSED if check.signer else FAILED})
    if error is not None:
        raise error
