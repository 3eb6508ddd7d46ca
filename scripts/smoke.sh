#!/bin/sh
# Install a wheel with each Python that is there, outside of the checkout, and build firmware with it.
#
#   scripts/smoke.sh dist/mlfbuild-1.2.3-py3-none-any.whl
#
# PYTHONS names the interpreters. The exit status is 1 if one of them fails or there is none.
set -eu
wheel=$(realpath "$1")
models=$(realpath "$(dirname "$0")/../examples/digits")
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH

# An interpreter of each version: a name in PATH, or those of pyenv and uv, which have several versions side by side.
find_pythons() {
    for minor in 10 11 12 13 14; do
        for python in "python3.$minor" "$HOME/.pyenv/versions/3.$minor."*/bin/python \
            "$HOME/.local/share/uv/python/cpython-3.$minor."*/bin/python /usr/bin/python3; do
            if "$python" -c "import sys, venv, ensurepip; sys.exit(sys.version_info[1] != $minor)" >/dev/null 2>&1; then
                echo "$python"
                break
            fi
        done
    done
}

# Run in a subshell without -e, whose steps are joined by &&, because -e has no effect in a condition.
smoke() (
    cd "$1" && "$2" -m venv venv &&
        venv/bin/python -m pip install -qq --no-compile "$wheel" &&
        PATH="$1/venv/bin:$PATH" &&
        mlfbuild init firmware --model "$models/models/digits.tflite" --vectors "$models/tests/digits.npz" -q &&
        cd firmware && mlfbuild check && mlfbuild build -q &&
        [ "$(mlfbuild build 2>&1 >/dev/null)" = "nothing to build: 2 jobs up to date" ] &&
        find build -name '*.elf' | grep -q .
)

status=1 failed=0
for python in ${PYTHONS:-$(find_pythons)}; do
    folder=$(mktemp -d)
    version=$("$python" -c 'import platform; print(platform.python_version())')
    if smoke "$folder" "$python" >"$folder/log" 2>&1; then
        status=0
        echo "smoke: Python $version: built firmware"
    else
        failed=1
        echo "smoke: Python $version: failed"
        cat "$folder/log"
    fi
    rm -rf "$folder"
done
exit $((status | failed))
