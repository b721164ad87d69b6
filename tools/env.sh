#!/bin/sh
# Make the virtual environment that is named in the first argument and install into it what the file lists that the
# second argument names; or, if more arguments follow, what those name, in the versions of that file. The environment's
# file made_from says with which Python, and which versions.
# Plain sh, because it must be able to say that a Python is too old.
set -eu

venv=$1
versions=$2
shift 2
if [ "$#" -eq 0 ]; then set -- -r "$versions"; else set -- -c "$versions" "$@"; fi

stop() {
    echo "$1" >&2
    exit 1
}

new_enough() {
    command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

has_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

without_venv=""
python=""
for candidate in ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3 python}; do
    if new_enough "$candidate"; then
        if has_venv "$candidate"; then
            python=$candidate
            break
        fi
        without_venv=${without_venv:-$candidate}
    fi
done

if [ -z "$python" ]; then
    [ -z "$without_venv" ] ||
        stop "$without_venv has no venv module: install it (on Debian and Ubuntu: apt install python3-venv) and type the command again."
    [ -z "${PYTHON:-}" ] || stop "PYTHON=$PYTHON is no Python 3.11 or newer: name one that is."
    found=$(python3 --version 2>/dev/null || echo "no Python")
    stop "This needs Python 3.11 or newer and found $found: install a newer one, or name it as in make book PYTHON=/path/to/python3."
fi

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    echo "Making $venv with $("$python" --version)."
    "$python" -m venv --clear "$venv"
fi
echo "Installing into $venv: $*; the first time this takes some minutes."
# Python compiles what it imports, when it does: most of what is installed never is.
"$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar on --no-compile "$@" ||
    stop "The installation failed; its last lines say why. Check the network and type the command again: it goes on where it stopped."
{ "$venv/bin/python" --version; cat "$versions"; } >"$venv/made_from"
