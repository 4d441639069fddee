#!/usr/bin/env bash
# Resolves pyproject.toml into lock.txt and models.txt.
#   lock.sh UV
set -euo pipefail
uv=$1
cd "$(dirname "$0")"
# uv does not read pip's settings: pass on the folders in which pip finds a CPU build of torch
links=(); for place in ${PIP_FIND_LINKS:-}; do links+=(--find-links "$place"); done
head -n 1 lock.txt > lock.new
"$uv" pip compile ../pyproject.toml --quiet --extra train --extra serve --extra dev --universal --python-version 3.11 "${links[@]}" \
  --generate-hashes --no-emit-package torch --no-annotate --no-header |
  awk '/^[a-z]/ { wanted = !/^(cuda-|nvidia-|triton=)/ } wanted' >> lock.new  # a CUDA build of torch brings its own
mv lock.new lock.txt
head -n 1 models.txt > models.new
printf "accelerate\nbitsandbytes\nfast-langdetect\ntrl\n" | "$uv" pip compile - --quiet --no-deps --generate-hashes --no-annotate --no-header >> models.new
mv models.new models.txt
