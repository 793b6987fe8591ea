#!/bin/bash
# Makes this Mac a runner of the fleet, or takes that back.
#
#   runner/setup.sh --dry-run                    print every change, make none
#   sudo runner/setup.sh install --url https://github.com/OWNER/NAME --runner FOLDER [--labels a,b] [--work FOLDER]
#   sudo runner/setup.sh uninstall
#
# FOLDER is GitHub's runner, unpacked and registered (config.sh) by the account that is to run it.
set -euo pipefail

label=io.github.mps-build.runner
guard=io.github.mps-build.disk-guard
here="$(cd "$(dirname "$0")" && pwd)"
# Tests put a folder of their own in front of every path.
root="${MPS_BUILD_SETUP_ROOT:-}"
daemons="$root/Library/LaunchDaemons"
home="$root/usr/local/libexec/mps-build"

system_pythons="/opt/homebrew/bin/python3 /usr/local/bin/python3"
system_pythons="$system_pythons /Library/Frameworks/Python.framework/Versions/Current/bin/python3"

action=install
dry_run=false
url=
runner=
labels=mps-build
work=/opt/mps-build

usage() {
  sed -n '2,8s/^# \{0,1\}//p' "$0"
}

fail() {
  echo "error: $1" >&2
  [ -z "${2:-}" ] || echo "hint: $2" >&2
  exit 2
}

run() {
  echo "+ $*"
  "$dry_run" || "$@"
}

# Writes stdin to a file that is made in a folder of root's and moved to its place: where the runner's account may write,
# it could have put a link under any name that root writes to.
put() {
  local mode="$1" path="$2" owner="${3:-}" text part
  text="$(cat)"
  echo "+ write $path (mode $mode)"
  if "$dry_run"; then
    printf '%s\n' "$text" | sed 's/^/    | /'
    return
  fi
  no_links "$home"
  mkdir -p "$home" "$(dirname "$path")"
  part="$(umask 077 && mktemp "$home/.part.XXXXXX")"
  printf '%s\n' "$text" > "$part"
  chmod "$mode" "$part"
  [ -z "$owner" ] || chown "$owner" "$part"
  # mv would put it into a folder of that name, or where a link of that name leads.
  if [ -L "$path" ] || [ -d "$path" ]; then
    rm -f "$part"
    fail "$path is a link or a folder" "remove it"
  fi
  mv -f "$part" "$path"
}

# Runs a command as the runner's account, so that no link of its own leads further than it may go itself.
as_runner() {
  echo "+ $*"
  "$dry_run" || runner_does "$@"
}

runner_does() {
  if [ -n "$root" ]; then "$@"; else sudo -n -u "$user" -- "$@"; fi
}

# Refuses a path of which any part, below the tests' own folder, is a link.
no_links() {
  local path="${1#"$root"}" so_far="$root" part
  local IFS=/
  for part in $path; do
    [ -n "$part" ] || continue
    so_far="$so_far/$part"
    [ ! -L "$so_far" ] || fail "$so_far is a link" "give the path that it leads to"
  done
}

# Prints a file of the runner's without our lines. It must be a plain one with no second name (a hard link to it).
without_ours() {
  local path="$1"
  [ -e "$path" ] || [ -L "$path" ] || return 0
  if [ -L "$path" ] || [ -z "$(find "$path" -prune -type f -links 1)" ]; then
    fail "$path is a link, or has a second name" "look at it, then remove it: ls -li '$path'"
  fi
  if "$dry_run"; then
    sed '/^# mps-build begin$/,/^# mps-build end$/d' "$path"
  else
    runner_does sed '/^# mps-build begin$/,/^# mps-build end$/d' "$path"
  fi
}

# What stands in a plist is text, not markup.
escaped() {
  printf '%s' "$1" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g'
}

plist() {
  sed -e "s|@LABEL@|$label|g" -e "s|@GUARD@|$guard|g" \
    -e "s|@USER@|$(escaped "$user" | sed 's/[&|\\]/\\&/g')|g" \
    -e "s|@RUNNER@|$(escaped "$runner" | sed 's/[&|\\]/\\&/g')|g" \
    -e "s|@WORK@|$(escaped "$work" | sed 's/[&|\\]/\\&/g')|g" \
    -e "s|@PATH@|$(escaped "$search" | sed 's/[&|\\]/\\&/g')|g" \
    -e "s|@HOME@|$(escaped "${home#"$root"}" | sed 's/[&|\\]/\\&/g')|g" "$here/$1"
}

# The first python3 that will do: root's PATH, or Apple's 3.9 on it, must not hide Homebrew's.
find_python() {
  local found
  for found in "$(command -v python3 || true)" $system_pythons; do
    if [ -x "$found" ] && "$found" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2> /dev/null; then
      printf '%s' "$found"
      return
    fi
  done
}

# What a service searches: launchd gives it /usr/bin:/bin:/usr/sbin:/sbin alone.
search_path() {
  local folder found=
  for folder in ${1+"$@"} /opt/homebrew/bin /usr/local/bin /usr/bin /bin /usr/sbin /sbin; do
    case ":$found:" in
      *":$folder:"*) ;;
      *) found="${found:+$found:}$folder" ;;
    esac
  done
  printf '%s' "$found"
}

check() {
  [ "$(uname -s)" = Darwin ] || "$dry_run" || fail "this is not a Mac" "--dry-run shows the changes anywhere"
  "$dry_run" || [ "$(id -u)" = 0 ] || fail "this needs root" "sudo $0 $action ..."
  work="${work%/}"
  case "$work/" in
    *[!A-Za-z0-9/_.-]* | [!/]* | *//* | */./* | */../*)
      fail "--work $work: an absolute path of plain characters is needed, without . and .. and //"
      ;;
    /opt/?*/ | /Users/?*/?*/) ;;
    *) fail "--work $work: a folder below /opt, or below somebody's folder in /Users, is needed" ;;
  esac
  no_links "$root$work"
}

check_install() {
  if "$dry_run"; then
    runner="${runner:-/Users/runner/actions-runner}"
    url="${url:-https://github.com/OWNER/NAME}"
  fi
  [ -n "$url" ] || fail "--url is missing" "--url https://github.com/OWNER/NAME: the repository that this Mac serves"
  [ -n "$runner" ] || fail "--runner is missing" "the folder of GitHub's runner, unpacked and registered"
  repository="${url#https://github.com/}"
  repository="${repository%/}"
  case "$repository" in
    */*/* | /* | */ | *[!A-Za-z0-9_./-]*) fail "--url $url is not a repository on github.com" ;;
    */*) ;;
    *) fail "--url $url names no repository" "an organisation's runner would serve them all" ;;
  esac
  if ! "$dry_run"; then
    [ ! -L "${runner%/}" ] || fail "$runner is a link" "give the folder that it leads to"
    [ -x "$runner/run.sh" ] || fail "$runner holds no runner (run.sh)" "unpack it there, as the account that is to run it"
    [ -f "$runner/.runner" ] || fail "the runner in $runner is not registered" \
      "$runner/config.sh --url $url --labels $labels --token TOKEN, as its account"
    user="$(stat -f %Su "$runner")"
    [ "$user" != root ] || fail "the runner in $runner belongs to root" "give it an account of its own"
    python="$(find_python)"
    [ -n "$python" ] || fail "there is no python3 of 3.10 or newer" \
      "brew install python@3.12, or python.org's installer; Apple's own is 3.9"
    search="$(search_path "$(dirname "$python")")"
  else
    user=runner
    python=python3
    search="$(search_path)"
  fi
}

install_() {
  check_install
  echo "# Never asleep, and back after a power cut"
  run pmset -a sleep 0 disksleep 0 displaysleep 0 powernap 0 autorestart 1
  echo "# One place for the work on every Mac, so that their compiler caches share; no Spotlight there"
  # Root makes and gives away the one folder; all in it is the runner's own affair, and is made as its account.
  run mkdir -p "$root$work"
  run chown -h "$user" "$root$work"
  as_runner mkdir -p "$root$work/work" "$root$work/cache"
  as_runner touch "$root$work/.metadata_never_index"
  run mdutil -i off "$root$work" || echo "# no volume of its own: the file .metadata_never_index must do"
  echo "# Hooks outside the runner's folder, where no job may write"
  for script in hooks/job-started.sh hooks/job-completed.sh disk-guard.sh; do
    put 755 "$home/$(basename "$script")" < "$here/$script"
  done
  put 644 "$home/repositories" <<< "$repository"
  echo "# What each job gets"
  local kept
  kept="$(without_ours "$runner/.env")" || exit 2
  {
    [ -z "$kept" ] || printf '%s\n' "$kept"
    cat << END
# mps-build begin
ACTIONS_RUNNER_HOOK_JOB_STARTED=${home#"$root"}/job-started.sh
ACTIONS_RUNNER_HOOK_JOB_COMPLETED=${home#"$root"}/job-completed.sh
MPS_BUILD_REPOSITORIES=$repository
MPS_BUILD_WORK=$work/work
MPS_BUILD_CACHE=$work/cache
MPS_BUILD_PYTHON=$python
# mps-build end
END
  } | put 600 "$runner/.env" "$user"
  echo "# The services: the runner, and the disk guard each hour"
  local service
  for service in runner disk-guard; do
    local name="io.github.mps-build.$service"
    plist "$name.plist" | put 644 "$daemons/$name.plist"
    run plutil -lint "$daemons/$name.plist"
    # Not loaded yet the first time.
    run launchctl bootout "system/$name" 2> /dev/null || true
    run launchctl bootstrap system "$daemons/$name.plist"
  done
  echo "next: nox -s doctor -- --all, as $user; then a job with the labels [self-hosted, macOS, ARM64, $labels]"
}

uninstall() {
  local name kept
  [ -z "$runner" ] || [ ! -L "${runner%/}" ] || fail "$runner is a link" "give the folder that it leads to"
  [ -z "$runner" ] || "$dry_run" || user="$(stat -f %Su "$runner")"
  for name in "$label" "$guard"; do
    run launchctl bootout "system/$name" 2> /dev/null || true
    run rm -f "$daemons/$name.plist"
  done
  if [ -n "$runner" ] && [ -f "$runner/.env" ]; then
    kept="$(without_ours "$runner/.env")" || exit 2
    put 600 "$runner/.env" "$user" <<< "$kept"
  fi
  run rm -rf "$home"
  echo "left as they are: $work (remove it yourself), power settings (pmset restoredefaults), the runner's registration"
  echo "(config.sh remove --token TOKEN); give --runner FOLDER to clean its .env as well"
}

while [ $# -gt 0 ]; do
  case "$1" in
    install | uninstall) action="$1" ;;
    --dry-run) dry_run=true ;;
    --url | --runner | --labels | --work)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case "$1" in
        --url) url="$2" ;;
        --runner) runner="$2" ;;
        --labels) labels="$2" ;;
        --work) work="$2" ;;
      esac
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    *) fail "what is $1?" "$0 --help" ;;
  esac
  shift
done

user=
python=
search=
check
if [ "$action" = install ]; then install_; else uninstall; fi
