#!/bin/sh
# Makes the virtual environment: make_venv.sh PYTHON FOLDER
# An installed torch >= 2.9 is used as it is, so that nobody's CUDA build is hidden by another one; else torch comes
# first and alone, by pip's own settings.
set -eu
python=$1
venv=$2

fail() {
    echo "cuda-l1: $1" >&2
    exit 2
}

command -v "$python" >/dev/null || fail "no $python on the PATH; install Python 3.11 or newer, or give PYTHON=..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is older than 3.11; give a newer one, e.g. make demo PYTHON=python3.12"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "$python cannot make virtual environments; run: sudo apt install python3-venv"

# The folder of an installed torch that is new enough, or nothing.
found=$("$python" - <<'PYTHON'
import re
from importlib import metadata

try:
    torch = metadata.distribution("torch")
except metadata.PackageNotFoundError:
    raise SystemExit
if tuple(int(n) for n in re.findall(r"\d+", torch.version)[:2]) >= (2, 9):
    print(torch.locate_file(""))
PYTHON
)

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-compile "$@"
}

if [ -n "$found" ]; then
    echo "using the torch in $found"
    "$python" -m venv --system-site-packages "$venv"
    # Of another virtual environment Python passes on nothing: its folder is named last on the path instead.
    "$venv/bin/python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' ||
        echo "$found" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
else
    "$python" -m venv "$venv"
    echo "installing torch (pip's settings choose the build; see README.md for the small CPU one)"
    pip -c constraints.txt torch
fi
echo "installing cuda-l1"
pip -e .
# On all cores; pip compiles on one. A file that does not compile, or a machine without semaphores, is no reason to fail.
"$venv/bin/python" -m compileall -qq -j 0 "$venv/lib" || :
