"""The words by which programs say that something failed: which of them say what, and which only that."""

from __future__ import annotations

import re

# strerror(3), as Unix tools end their complaints.
_ERRNO = (
    r"(?:No such file or directory|Permission denied|Operation not permitted|No space left on device"
    r"|Read-only file system"
    r"|Cannot allocate memory|Too many open files(?: in system)?|Not a directory|Is a directory|File exists"
    r"|Exec format error"
    r"|Resource temporarily unavailable|Input/output error|Argument list too long|Bad CPU type in executable"
    r"|Connection (?:refused|reset by peer)|Operation timed out|Network is unreachable|Disc quota exceeded"
    r"|Directory not empty|Stale NFS file handle|File name too long|Device not configured|Text file busy)"
)
_SIGNAL = (
    r"(?:[Kk]illed|[Ss]egmentation\ fault|[Aa]bort(?:ed)?(?:\ trap)?|[Bb]us\ error"
    r"|[Ii]llegal\ (?:hardware\ )?instruction"
    r"|[Tt]race/BPT\ trap|[Tt]race\ trap|[Tt]erminated|[Ff]loating\ point\ exception|[Hh]angup|[Cc]pu\ limit\ exceeded"
    r"|[Qq]uit|[Uu]ser\ defined\ signal\ \d)"
)
_SHELL = r"(?:\S{0,200}/)?-?(?:ba|z|da|k|tc|fi)?sh"

# A message of the one who failed.
STRONG = re.compile(
    rf"""^\s{{0,200}}(?:
      [^\s:][^:]*:\d+(?::\d+)?:\ (?:fatal\ )?[eE]rror:\ .                  # clang, gcc, metal, as
    | \S[^:()]{{0,300}}\(\d+(?:,\d+)?\):\ (?:fatal\ )?error\b               # the IDEs' form
    | (?:[Ff]atal\ )?[Ee]rror(?:\[\w+\])?:\ .
    | [\w./+@-]+:\ (?:[Ff]atal\ )?[Ee]rror:\ . | [\w./+@-]+:\ fatal:\ .     # clang++: error:, xcrun: error:
    | \#\#\[error\]. | ::error\b
    | (?:ERROR|FATAL|Fatal|fatal|CRITICAL)\b:?\ . | \[(?:ERROR|FATAL|error|fatal)\]:?\ . | npm\ ERR!\ (?!A\ complete).
    | CMake\ Error\b
    | (?:\S{{0,200}}/)?(?:ld|ld64\.lld|ld\.lld|mold|ld64)(?:-\w+)?:\ (?!warning).
    | Undefined\ symbols(?:\ for\ architecture|:)
    | duplicate\ symbol\b | LLVM\ ERROR:\ . | UNREACHABLE\ executed\ at
    | (?:E\s+)?[A-Za-z_][\w.]*(?:Error|Exception|KeyboardInterrupt|NotFound|Timeout|TimeoutExpired)(?::\ |:?\s*$)
    | (?:E\s+)?(?:Assertion\ failed:\  | Fatal\ Python\ error:\  | OMP:\ Error | dyld(?:\[\d+\])?:)
    | .{{0,300}}:\ Assertion\ [`'].{{1,500}}'\ failed\. | .{{0,300}}\bfailed\ assertion\ [`'"]
    | libc\+\+abi:\ terminating | terminate\ called\ (?:after|without) | \*{{3}}\ Terminating\ app\ due
    | thread\ '.{{1,60}}'\ (?:\(\d+\)\ )?panicked
    | panic:\ . | \*{{3}}\ (?:longjmp|stack\ smashing|buffer\ overflow)
    | (?:\S{{1,200}}:\ (?:line\ )?\d+:\s+)?(?:\d+\ )?{_SIGNAL}(?::\ \d+)?(?:\s*\(core\ dumped\))?(?:\s*$|\s\s+\S)
    | \S{{1,200}}:\ line\ \d+:\s+\d+\ {_SIGNAL}\b
    | (?:{_SHELL}|\[\d{{1,4}}\]\ {{1,9}}[-+]?\ {{0,9}}\d{{1,9}}):?\ +{_SIGNAL}\b
    | fish:\ .{{1,200}}\bterminated\ by\ signal
    | {_SHELL}:\ .{{0,300}}(?:not\ found|No\ such\ file|Permission\ denied|cannot\ execute
      |Operation\ not\ permitted|bad\ interpreter)
    | {_SHELL}:\ (?:no\ such\ file|no\ matches\ found|permission\ denied|exec\ format\ error|bad\ CPU)
    | fish:\ Unknown\ command
    | \S{{1,200}}:\ (?:line\ )?\d+:\ .{{0,300}}:\ (?:command\ )?not\ found\s*$
    | \S{{1,200}}:\d+:\ command\ not\ found:\ . | \(eval\):\d+:\ command\ not\ found
    | (?:\S*/)?(?:env|nice|nohup|time|timeout|sudo|xargs|exec|g?make(?:\[\d+\])?):\ .{{1,300}}(?:No\ such\ file
      |[Cc]ommand\ not\ found|not\ found)
    | [Ee]xec:?\ .{{1,200}}executable\ file\ not\ found
    | error\ in\ \S+\ setup\ command:
    | \S*python[\d.]*:\ (?:can't\ open\ file|No\ module\ named)
    | g?make(?:\[\d+\])?:\ \*\*\*\ (?:No\ |missing|multiple|virtual) | \S{{1,200}}:\d+:\ \*\*\*\ .
    | Torch\ not\ (?:compiled|linked)\ with\ MPS
    | curl:\ \(\d+\)\ . | E:\ [A-Z]. | xz:\ .{{1,300}}:\ . | tar:\ Error | unzip:\ \ ?cannot
    | (?:CMake\ )?[Cc]ould\ NOT\ find\ .{{1,200}}\(missing | (?:CRITICAL|ERROR)\ -\ .
    | (?:[a-z]\w*\.)+[a-z]\w*(?:error|exception):\ .
    | [├╰]─▶\ \S | (?:error|critical)\s+libmamba\ . | Could\ not\ solve\ for\ environment\ specs
    | (?:[|│]\ {{1,4}})?Unable\ to\ find\ installation\ candidates | .{{0,600}}\bversion\ solving\ failed\b
    | \[\w{{1,60}}(?:Error|Exception|Impossible|Unsatisfiable\w{{0,20}})\]:?\ .
    )""",
    re.VERBOSE,
)
# A Unix tool's complaint: often survived, but the message if its caller failed right after.
COMPLAINT = re.compile(
    rf"""^\s{{0,200}}(?:
      (?!\S*\.py)[\w./+@\[\]-]{{1,200}}:\ .{{1,400}}:\ {_ERRNO}\.?\s*$ | [\w./+@-]{{1,200}}:\ {_ERRNO}\.?\s*$
    | \S{{1,200}}:\ .{{0,200}}\b(?:[Cc]annot|[Cc]ould\ not|[Uu]nable\ to|[Ff]ailed\ to|invalid|unknown
      |unrecognized|illegal)\ .
    | (?:[Cc]annot|[Cc]an't|[Cc]ould\ not|[Uu]nable\ to|[Ff]ailed\ to|No\ module\ named|Missing\ |missing[ ]
      |Unknown\ |Invalid\ |Unsupported\ )[\w\ '"/.:-]{{3,}}
    | .{{1,300}}\b(?:is\ not\ (?:found|installed|available|supported)|not\ found|does\ not\ exist|is\ missing
      |timed\ out|is\ required)\b
    )""",
    re.VERBOSE,
)
# Says that something before it failed (or below it, for those that announce), not what.
FRAME = re.compile(
    r"""linker\ command\ failed | error:\ command\ .{0,600}\ failed | collect2:\ error
    | subprocess-exited-with-error | metadata-generation-failed | failed-wheel-build-for-install
    | ERROR:?\ (?:Failed\ (?:to\ build|building)|Could\ not\ build|Backend\ subprocess\ exited
      |.{0,12}exit(?:ed)?\ code)
    | CalledProcessError | Error\ compiling\ objects\ for\ extension | distutils\.errors\.\w+:\ command
    | Process\ completed\ with\ exit\ code | frontend\ command\ failed | clang.{0,40}:\ note:[ ]
    | SystemExit(?::\ \d+)?\s*$
    | CMake\ (?:build|install|configure)\ failed | CMake\ configuration\ failed
    | CMake\ Error:\ (?:Generator|Problem\ processing) | CompileError:\ command
    | ninja:\ build\ stopped | [Ff]ailed\ to\ build\b | \bg?make(?:\[\d+\])?:\ \*\*\*\ \[ | \*{3}\ Error\ code\ \d
    | ^\s*FAILED\b | Configuring\ incomplete
    | too\ many\ errors\ emitted | did\ not\ (?:run|complete)\ successfully
    | \b(?:[Ee]xit(?:ed)?|EXIT)(?:\ with)?(?:\ exit)?(?:\ (?:code|status|value))?\ ?[=:(]?\ ?(?:exit\ (?:code
      |status)[:=]?\ )?'?-?[1-9]\d{0,4}\b
    | \breturned?\ (?:a\ |with\ )?non-?zero | \bnon-?zero\ exit | \bexit\ (?:code|status)[:\ ]+[1-9]
    | \bfailed\ with\ (?:a\ )?(?:nonzero\ |non-zero\ )?(?:exit\ )?(?:code|status|error\ code)\b
    | \berror\ Command\ failed
    | \*{2}\ (?:BUILD|ARCHIVE|TEST|INSTALL)\ FAILED\ \*{2} | ^\s*BUILD\ FAIL | \bFinished:\ FAILURE
    | marked\ build\ as\ failure
    | ERROR:\ Job\ failed | ERROR:\ (?:failed\ to\ solve|executor\ failed) | error:\ builder\ for\ '?
    | error:\ (?:Cannot|could\ not)\ build\ '?/nix
    | error:\ \d+\ dependenc | error:\ build\ of\ '
    | ==>\ Error:\ (?:ProcessError|Terminating) | failed\ to\ run\ custom\ build\ command
    | process\ didn't\ exit\ successfully
    | command\ execution\ failed
    | Error:\ (?:Failed\ to\ (?:build|install|configure|destroot)|Processing\ of\ port|Follow\ https)
    | ELIFECYCLE | Recipe\ `.{1,80}`\ failed | \bSession\ \S{1,80}\ failed | Build\ step\ '.{1,80}'\ failed
    | did\ not\ build\b
    | ^\s*(?:×|x)\ (?:Failed|Building|Preparing|python|Getting|Encountered|No\ solution\ found)
    | \bSolving\ environment:\ (?:\.{3}working\.{3}\ )?failed\s*$
    | ^\s*[-•*]\ (?:Installing|Updating|Downgrading)\ \S{1,100}\ \(.{1,100}\):\ [Ff]ailed
    | [├╰]─▶\ (?:The\ build\ backend|Call\ to)
    | Failed\ executing:\  | error:\ Failed\ to\ (?:install|prepare|build|download) | died\ with\ <Signals
    | The\ following\ build\ commands\ failed
    | \d{1,6}\ errors?\ generated | \d{1,6}\ failed\b.{0,60}\bin\ [\d.]+s
    | (?:build|Build|Job|Task|Step|Command)\ (?:has\ )?failed\b""",
    re.VERBOSE,
)
# Frames whose reason stands below them; the others conclude what stands above.
ANNOUNCES = re.compile(
    r"""^\s*FAILED\b | subprocess-exited-with-error
    | ERROR:\ (?:failed\ to\ solve|executor) | error:\ builder\ for | error:\ Cannot\ build
    | did\ not\ (?:run|complete)\ successfully | ^\s*× | ─▶ | ==>\ Error | Failed\ executing
    | custom\ build\ command | didn't\ exit\ successfully
    | Failed\ to\ build""",
    re.VERBOSE,
)
# Frames that are worth seeing where nothing else is left.
TELLING_FRAME = re.compile(
    r"\s*(?:FAILED: |g?make(?:\[\d+\])?: \*\*\* \[)"
    r"|.{0,600}\b(?:SIG[A-Z]{3,5}\b|code:? 13[0-9]\b|.{1,80}: Command exited)"
)
# Where nothing else speaks: a line that begins so is no good news, whoever wrote it.
ALARM = re.compile(r"^\s{0,200}(?:[×✗✘✖❌✕]\s|(?:error|ERROR|Error|fatal|FATAL|CRITICAL)\b[:\s!])")
# Sounds like trouble and is none.
INNOCENT = re.compile(
    r"""would\ duplicate\ path | unable\ to\ lookup\ item\ .PlatformVersion | ERROR:delocate\.libsana
    | ^\s*--\  | ^\s*\[\ ?\d{1,9}(?:/\d{1,9}|%)[^\]]{0,60}\]\  | \bwarning:\  | \bnote:\  | UserWarning
    | \bWARNING\b | Warning:[ ]
    | dependency\ resolver\ does\ not | ^\s*objc\[\d+\] | sysctl:\  | ^\s*ERROR:\ test_ | \b0\ errors?\b
    | \b0\ failed\b
    | This\ is\ an\ issue\ with\ the\ package | This\ error\ originates\ from | note:\ This\ error
    | \bignored\b | ^\s*Exception\ ignored
    | ^\s*(?:fatal|git):?\ .{0,40}No\ (?:names|tags)\ (?:found|can\ describe)""",
    re.VERBOSE,
)
# A question that build scripts ask and can do without (setup.py asks git for a commit, in a tarball too).
PROBED_ONLY = re.compile(r"fatal: not a git repository|fatal: No names found|fatal: no tag exactly matches")
SUCCESS = re.compile(
    r"""^\s{0,200}(?:
      Successfully\ (?:built|installed|created|uploaded)\b
    | (?:Created|created|Built|built)\ wheel\b | creating\ '[^']+\.whl' | removing\ build/bdist
    | \[(\d+)/\1\]\ (?:Install|Linking|Running\ utility)
    | Finished\ processing\ dependencies
    | =+\ \d+\ passed(?!.{0,200}(?:failed|error))
    | (?:BUILD\ SUCCESS(?:FUL)?|Build\ succeeded|All\ checks\ passed|Job\ succeeded|Finished:\ SUCCESS
      |\*\*\ BUILD\ SUCCEEDED)
    | .{0,120}\b(?:[Ee]xit(?:ed)?(?:\ with)?(?:\ (?:code|status))?|[Ee]xit\ code|rc
      |status)\ ?[=:]?\ ?'?0'?\.?\s*(?:\(.{0,40}\)|$)
    )""",
    re.VERBOSE,
)
# Reached although a step failed, with `ninja -k`.
LAST_STEP = re.compile(r"\s*\[(\d+)/\1\]")
CMAKE_HEAD = re.compile(r"\s*CMake (?:Error|Warning)(?: \(dev\))? (?:at \S|in \S|: ?\S)")
STEP_FAILED = re.compile(r"\s*(?:FAILED: |g?make(?:\[\d+\])?: \*\*\* \[)")
# Submodules are checked out once all of them are there, second tries included.
CONFIGURED = re.compile(r"\s*-- Build files have been written to:|Submodule path '[^']{1,300}': checked out ")
# Speaks, but not of what failed: rulers, carets and code, frames of tracebacks, hints that follow every failure.
MUTE = re.compile(
    r"""^\s{0,200}(?:
      [^A-Za-z]*$ | File\ ".{1,400}",\ line\ \d+ | Traceback\ \(most | \d+\ \|\  | ~*\^[~^]*\s*$
    | In\ file\ included | from\ /\S+:\d+
    | See\ also\ " | Call\ Stack\ \(most | \[end\ of\ output\] | (?:hint|note|Note):[ ]
    | \d+\ (?:warnings?|errors?)\b | ╰─>\ \[\d+\ lines
    | (?:/|\./|\.\./)\S+\ -\S | (?:cd|ccache|sccache)\ \S+ | :\ &&[ ]
    | (?:\S*/)?(?:clang|g)(?:\+\+|cc)?(?:-\d+)?\ -\S | \[std(?:out|err)\]
    | g?make(?:\[\d+\])?:\ (?:Entering|Leaving|Nothing|Target|Waiting|\*\*\*)
    | Please\ |For\ (?:more|full)\ | See\ |Run\ with\ |Full\ log | last\ \d+\ (?:log\ )?lines
    | gmake\b | ninja:\ (?:Entering|build\ stopped) | Post-run | Cleaning\ up | Uploading | Running\ after
    | section_(?:start|end) | \#\#\[(?:group|endgroup|section|command)
    | (?:real|user|sys)\s+\d+m | Command:\  | cwd:\ | exit\ code:\  | at\ \S+\ \(.{1,200}:\d+:\d+\)
    )""",
    re.VERBOSE,
)
PYTHON_TRACEBACK = re.compile(r"\s*(?:E\s+)?Traceback \(most recent call last\):")
RAISED = re.compile(r"\s*[A-Za-z_][\w.]{1,120}(?::\s|:?$)")
PROGRAM = re.compile(r"\s*([a-z][\w.+-]{1,40})(?: error| fatal)?: ")
