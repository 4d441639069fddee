#!/usr/bin/env bash
# Makes a virtual environment with pip, also on Debian and Ubuntu, where `venv` is a package of its own.
#   venv.sh PYTHON FOLDER
set -u
python=$1 folder=$2
rm -rf "$folder"
"$python" -m venv "$folder" >/dev/null 2>&1 && exit 0
rm -rf "$folder"
package=$("$python" -c 'import sys; print(f"python3.{sys.version_info[1]}-venv")')
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing $package, which $python lacks"
  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "$package" >/dev/null &&
    "$python" -m venv "$folder" && exit 0
fi
if "$python" -m virtualenv --version >/dev/null 2>&1; then
  "$python" -m virtualenv --quiet "$folder" && exit 0
fi
echo "$python cannot make virtual environments. Install that part of it and run make again:" >&2
echo "  sudo apt-get install -y $package" >&2
exit 1
