#!/usr/bin/env bash
# The steps of action.yml: `simulate.sh key | build | run`, with TORCH, MACOS, PACKAGES, RUN and COMPARE from its inputs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export MPS_BUILD_CACHE="$RUNNER_TEMP/mps-build-simulate"

case "$TORCH" in
  [0-9]*) target="torch==$TORCH" ;;
  *) target=$TORCH ;;
esac
options=("$target")
while IFS= read -r package; do
  test -z "$package" || options+=(--with "$package")
done <<<"${PACKAGES:-}"

simulate() { nox -f "$here/../noxfile.py" -s simulate -- "$@"; }

case "$1" in
  key)
    key=$(simulate "${options[@]}" --cache-key)
    printf 'key=%s\nfolder=%s\n' "$key" "$MPS_BUILD_CACHE" >>"$GITHUB_OUTPUT"
    ;;
  build)
    simulate "${options[@]}" -- python -c 'import torch; print(torch.__version__)'
    # What only the making needed: packages of Debian, and logs.
    rm -rf "$MPS_BUILD_CACHE"/simulation/apt-* "$MPS_BUILD_CACHE"/simulation/logs
    ;;
  run)
    if test "${COMPARE:-true}" = true; then
      export PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} -p mps_build.pytest_plugin --mps-compare"
    fi
    simulate "${options[@]}" --macos "$MACOS" -- bash -eo pipefail -c "$RUN"
    ;;
  *)
    echo "::error::simulate.sh knows key, build and run, not $1" && exit 2
    ;;
esac
