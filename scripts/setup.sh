#!/bin/sh
# Set up this checkout: install the programs that a firmware build requires, and mlfbuild in a virtual environment
# (.venv).
#
#   scripts/setup.sh         the requirements of `make demo`
#   scripts/setup.sh test    also those of the test suite
#
# Only missing packages are installed: a second run does nothing and needs no network. PYTHON names the interpreter.
# The exit status is 3 if this script cannot install a package; it prints the package and how to install it.
set -eu
cd "$(dirname "$0")/.."
extra=${1:-}
picolibc=picolibc-riscv64-unknown-elf
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "setup: $*"; }

has() { command -v "$1" >/dev/null 2>&1; }

# Python 3.10 or later that can make virtual environments (Debian packs ensurepip separately, in python3-venv).
find_python() {
    for python in ${PYTHON:-python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
        if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
}

has_c_library() { echo '#include <stdio.h>' | gcc -E -x c - >/dev/null 2>&1; }

# If GCC finds a library, it prints its path, otherwise only the name.
has_newlib() { [ -f "$(arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -print-file-name=libc.a 2>/dev/null)" ]; }

# Debian 12 has several versions of clang, and the one called clang does not support the Cortex-M85.
has_clang() {
    for clang in clang clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15; do
        if "$clang" --target=arm-none-eabi -mcpu=cortex-m85 -fsyntax-only cmake/toolchains/empty.c 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

clang_package() { if grep -qs bookworm /etc/os-release; then echo clang-16; else echo clang; fi; }

has_picolibc() { [ -f "$(riscv64-unknown-elf-gcc -print-file-name=picolibc.specs 2>/dev/null)" ]; }

# The Debian packages of missing programs; programs that were installed in another way count as present.
missing_packages() {
    has gcc || echo gcc
    has_c_library || echo libc6-dev
    [ -n "$(find_python)" ] || echo python3-venv
    has arm-none-eabi-gcc || echo gcc-arm-none-eabi
    has_newlib || echo libnewlib-arm-none-eabi
    has qemu-system-arm || echo qemu-system-arm
    has cmake || echo cmake
    has ninja || echo ninja-build
    [ "$extra" != test ] || missing_test_packages
}

# Packages that only tests use: Git, OpenSSH, Cargo, a sandbox, GDB, Cppcheck, compilers and an emulator for other CPUs than those
# of `make demo`, a browser with its driver, and a server with OpenSSL for its certificate.
missing_test_packages() {
    has git || echo git
    has ssh-keygen || echo openssh-client
    has cargo || echo cargo
    has bwrap || echo bubblewrap
    has gdb-multiarch || echo gdb-multiarch
    has cppcheck || echo cppcheck
    has_clang || clang_package
    has riscv64-unknown-elf-gcc || echo gcc-riscv64-unknown-elf
    has_picolibc || echo $picolibc
    has qemu-system-riscv32 || echo qemu-system-misc
    has chromium || echo chromium
    has chromedriver || echo chromium-driver
    has nginx || [ -x /usr/sbin/nginx ] || echo nginx
    has openssl || echo openssl
}

# The prefix of a command that needs root: nothing, sudo, or "none" if root access is not possible.
root_by() {
    if [ "$(id -u)" = 0 ]; then
        :
    elif has sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        echo sudo
    else
        echo none
    fi
}

give_up() {
    say "missing: $missing"
    say "$1"
    exit 3
}

install_packages() {
    # shellcheck disable=SC2086  # $missing is a list of words
    set -- $missing
    # The tests pass without ccache, so it is installed only together with something that is required.
    [ "$extra" != test ] || has ccache || set -- ccache "$@"
    root=$(root_by)
    if ! has apt-get; then
        give_up "apt-get not found; install the packages that docs/tutorial.md lists for other systems, then run this again"
    elif [ "$root" = none ]; then
        give_up "root or sudo is required; let an administrator run: apt-get install --no-install-recommends $missing"
    fi
    say "installing $missing (this can take some minutes)"
    case " $missing " in
        *" $picolibc "*)
            # The package has a gigabyte of libraries for all RISC-V variants; the tests need only one variant.
            say "installing only the libraries for rv32im of $picolibc"
            folder="/usr/lib/picolibc/riscv64-unknown-elf/lib"
            set -- -o "DPkg::Options::=--path-exclude=$folder/*" -o "DPkg::Options::=--path-include=$folder/rv32im/*" \
                -o "DPkg::Options::=--path-include=$folder/picolibc.ld" "$@"
            ;;
    esac
    # Go on if a third-party repository is unreachable: the installation fails if a package is really missing.
    $root apt-get -qq update || say "apt-get update failed; continuing"
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null ||
        give_up "apt-get could not install them; see its output above"
    # Debian starts a server for port 80. Tests start their own.
    case " $missing " in
        *" nginx "*) $root systemctl --quiet disable --now nginx >/dev/null 2>&1 || true ;;
    esac
}

# Set $pip to a pip for .venv. The demo uses that of the Python that made it, if there is one: a copy takes 18 MB and 3 s.
# .venv/bin/pip calls it, because the name pip in an active environment would otherwise be that of the system.
choose_pip() {
    pip=".venv/bin/python -m pip"
    if $pip --version >/dev/null 2>&1; then return; fi
    host=$(command -v "$(find_python)")
    if [ -z "$extra" ] && "$host" -m pip --python .venv/bin/python --version >/dev/null 2>&1; then
        pip=.venv/bin/pip
        printf '#!/bin/sh\nexec "%s" -m pip --python "%s" "$@"\n' "$host" "$(pwd)/.venv/bin/python" >$pip
        chmod +x $pip
    else
        .venv/bin/python -m ensurepip --default-pip >/dev/null
    fi
}

make_environment() {
    stamp=.venv/.mlfbuild-${extra:-demo}
    made_from="$(pwd) $(cksum <pyproject.toml)"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$made_from" ] && .venv/bin/python -c 'import mlfbuild, SCons' 2>/dev/null; then
        return
    fi
    say "installing mlfbuild and its dependencies into .venv"
    if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        "$(find_python)" -m venv --clear --without-pip .venv
    fi
    choose_pip
    # The demo imports a tenth of the modules, whose bytecode Python writes itself; tests import most of them.
    $pip install --quiet $([ "$extra" ] || echo --no-compile) --editable ".${extra:+[$extra]}"
    echo "$made_from" >"$stamp"
}

missing=$(missing_packages | xargs)
[ -z "$missing" ] || install_packages
missing=$(missing_packages | xargs)
[ -z "$missing" ] || give_up "still missing after the installation; check PATH, and that Python is at least 3.10"
make_environment
