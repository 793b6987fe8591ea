#!/bin/bash
# Before each job, on the host, where no pull request can change it: refuses what may not run here.
# GitHub's runner calls it (ACTIONS_RUNNER_HOOK_JOB_STARTED); a status other than 0 fails the job.
set -euo pipefail

refuse() {
  echo "::error::this Mac refuses the job: $1"
  exit 1
}

# The same list as scripts/mps_build/publish/fleet.py (a test compares them).
case "${GITHUB_EVENT_NAME:-}" in
  push | release | schedule | workflow_dispatch) ;;
  *) refuse "the event ${GITHUB_EVENT_NAME:-(none)} can be caused by strangers" ;;
esac

# From root's file beside this one, not from the environment, which a workflow may set.
served="$(dirname "$0")/repositories"
[ -f "$served" ] || refuse "$served is missing (runner/setup.sh writes it)"
[ -n "${GITHUB_REPOSITORY:-}" ] || refuse "the job names no repository"
grep -Fqx -- "$GITHUB_REPOSITORY" "$served" || refuse "it does not serve $GITHUB_REPOSITORY"

# A fork's push reaches no runner of ours; a tag or branch of the repository itself does.
case "${GITHUB_REF:-}" in
  refs/heads/* | refs/tags/*) ;;
  *) refuse "the ref ${GITHUB_REF:-(none)} is neither a branch nor a tag of the repository" ;;
esac

/bin/bash "$(dirname "$0")/disk-guard.sh" "${MPS_BUILD_WORK:+$(dirname "$MPS_BUILD_WORK")}" || refuse "the disk is too full"
