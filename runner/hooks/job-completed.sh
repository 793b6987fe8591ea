#!/bin/bash
# After each job: what it left in its temporary folder goes, and how much disk is left is reported.
# Trees and caches stay: they are what makes the next build quick. It never fails a job that is done.
set -uo pipefail

temporary="${RUNNER_TEMP:-}"
# Only a folder that the runner itself made: FOLDER/_work/_temp.
case "$temporary" in
  */_work/_temp) [ ! -d "$temporary" ] || find "$temporary" -mindepth 1 -maxdepth 1 -exec rm -rf {} + ;;
esac
/bin/bash "$(dirname "$0")/disk-guard.sh" "${MPS_BUILD_WORK:+$(dirname "$MPS_BUILD_WORK")}" || echo "::warning::the disk is nearly full"
exit 0
