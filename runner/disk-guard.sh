#!/bin/bash
# Fails where less than 40 GB are free; says how to free what is mps-build's own, and frees old trees with --free.
#
#   disk-guard.sh [--free] [FOLDER]     FOLDER: the runner's work folder (default: /opt/mps-build)
#
# It removes nothing itself: `nox -s clean` does, which knows its own trees and leaves those that a build holds.
set -euo pipefail

wanted_gb="${MPS_BUILD_FREE_GB:-40}"
free=false
if [ "${1:-}" = --free ]; then
  free=true
  shift
fi
folder="${1:-/opt/mps-build}"

case "$wanted_gb" in
  '' | *[!0-9]*) echo "error: MPS_BUILD_FREE_GB=$wanted_gb is not a number" >&2 && exit 2 ;;
esac
[ -d "$folder" ] || { echo "error: $folder is not there" >&2 && exit 2; }

free_gb() {
  # POSIX form, 1024-byte blocks: one line for one file system, wherever its name ends.
  local kilobytes
  kilobytes="$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')"
  case "$kilobytes" in
    '' | *[!0-9]*) echo "error: df does not tell what is free in $folder" >&2 && return 2 ;;
  esac
  echo $((kilobytes * 1024 / 1000000000))
}

# `if`, not `now="$(free_gb)"` under `set -e` alone: the status must be ours.
if ! now="$(free_gb)"; then exit 2; fi
if [ "$now" -lt "$wanted_gb" ] && "$free"; then
  echo "$now GB free: removing trees of ours that nobody used for 7 days"
  MPS_BUILD_WORK="$folder/work" MPS_BUILD_CACHE="$folder/cache" nox -s clean -- work --older-than 7
  if ! now="$(free_gb)"; then exit 2; fi
fi
if [ "$now" -lt "$wanted_gb" ]; then
  echo "error: $now GB free in $folder, $wanted_gb are needed" >&2
  echo "hint: nox -s clean shows what is ours; nox -s clean -- work --older-than 7 frees old trees" >&2
  exit 19
fi
echo "$now GB free in $folder"
