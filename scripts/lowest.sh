#!/bin/sh
# Make a virtual environment in the folder $1 with the lowest versions of dependencies that pyproject.toml allows.
#
# The judges of numbers are left out: they require newer versions (onnx, for example). numpy 1.24 supports Python up to
# 3.11, so PYTHON must name 3.10 or 3.11.
set -eu
cd "$(dirname "$0")/.."
environment=$1
export PIP_DISABLE_PIP_VERSION_CHECK=1

for python in ${PYTHON:-/usr/bin/python3 python3.11 python3.10 python3}; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info < (3, 12))' 2>/dev/null; then
        "$python" -m venv --clear "$environment"
        "$environment/bin/python" -m pip install --quiet uv
        "$environment/bin/uv" pip install --quiet --python "$environment/bin/python" --resolution lowest-direct \
            --editable '.[bson,onnx,sbom]'
        "$environment/bin/python" -m pip install --quiet pytest pytest-xdist hypothesis pyte
        exit 0
    fi
done
echo "lowest: Python 3.10 or 3.11 is required; set PYTHON" >&2
exit 3
