"""The readers of tools on forms that the specimens lack, and on texts that are none of theirs."""

from __future__ import annotations

import pytest
from mps_build.host.triage import explain
from mps_build.host.triage.tools.caches import parse_ccache, parse_sccache
from mps_build.host.triage.tools.ninja import FailedStep, parse_ninja, parse_ninja_log
from mps_build.host.triage.tools.read import parse_codesign_verify, parse_listdeps, parse_pip_wheel, read_tool_output

SCCACHE = """Compile requests   900
Compile requests executed   812
Cache hits   610
Cache hits (C/C++)   600
Cache hits (Rust)   10
Cache misses   190
Cache errors   12
Compilation failures   0
Non-cacheable calls   3
"""


@pytest.mark.parametrize(
    "text", ["", "\n\n", "hello\nworld\n", "error: nothing of the kind\n", "[x/y] no progress\n", "{}"]
)
def test_a_text_of_nobody_is_not_understood(text: str) -> None:
    assert read_tool_output(text) is None
    for program in ("ccache", "sccache", "ninja", "codesign", "delocate-listdeps", "pip", "cmake"):
        assert read_tool_output(text, [program]) is None


def test_a_command_asks_its_own_reader_only() -> None:
    ninja = "[1/2] Building CXX object a.o\n"

    assert read_tool_output(ninja, ["ninja", "-v"]) is not None
    assert read_tool_output(ninja, ["/opt/homebrew/bin/ccache", "-s"]) is None


def test_ccache_44_zeroed_tells_no_calls() -> None:
    stats = parse_ccache(
        "Summary:\n  Hits:            0 /    0\n  Misses:          0\nPrimary storage:\n  Hits: 0 / 0\n"
    )

    assert stats is not None
    assert (stats.hits, stats.misses, stats.uncacheable) == (0, 0, None)


@pytest.mark.parametrize(
    "text",
    [
        "PyTorch version: 2.9.1\nIs debug build: False\nClang version: 17.0.0\n",
        "Cacheable calls: 1.2.3 / 4.5.6\n  Hits: 7.8.9\n",
        "Cacheable calls: " + "9" * 5000 + "\n",
        "cache_miss\t" + "9" * 5000 + "\n",
        "Compile requests   " + "9" * 5000 + "\n",
        "[" + "1" * 5000 + "/" + "2" * 5000 + "] Building a.o\n",
        "# ninja log v7\n" + "1" * 5000 + "\t2\t3\ta\tb\n\u00b2\t\u00b2\t\u00b2\ta\tb\n",
    ],
)
def test_what_looks_like_a_figure_sinks_no_reader(text: str) -> None:
    for program in ("ccache", "sccache", "ninja", "pip", ".ninja_log"):
        assert (read_tool_output(text, [program]) or {}).get("hits") is None
    assert explain(text).cause is None


def test_ccaches_figures_of_a_storage_are_never_taken_for_calls() -> None:
    stats = parse_ccache("Local storage:\n  Cache size (GB): 1.5 / 5.0\n  Hits: 7 / 9\n  Misses: 2 / 9\n")

    assert stats is not None
    assert (stats.hits, stats.misses) == (0, 0)
    assert stats.size_gb == 1.5


def test_sccaches_parts_are_reported_but_not_added() -> None:
    stats = parse_sccache(SCCACHE)

    assert stats is not None
    assert stats.hits == 610
    assert stats.hits_by == {"C/C++": 600, "Rust": 10}
    assert stats.executed == stats.hits + (stats.misses or 0) + (stats.errors or 0) + (stats.compile_failures or 0)


def test_half_a_list_of_reasons_is_left_out() -> None:
    whole = parse_sccache(SCCACHE + "\nNon-cacheable reasons:\n-E   2\n@   1\n")
    half = parse_sccache(SCCACHE + "\nNon-cacheable reasons:\n-E   2\n")

    assert whole is not None
    assert half is not None
    assert (whole.reasons, half.reasons) == ({"-E": 2, "@": 1}, {})


def test_sccaches_dead_store_is_a_known_cause_in_both_wordings() -> None:
    for text in (
        "sccache: error: Server startup failed: cache storage failed to read\nContext:\n  service: s3\n",
        "sccache: error: Timed out waiting for server startup. Maybe the remote service is unreachable?\n",
    ):
        stats = parse_sccache(text)
        assert stats is not None
        assert (stats.error, stats.cause) == ("server-startup-failed", "N10")


@pytest.mark.parametrize("text", ['{"stats":', '{"stats":{}}', '{"stats":[]}', '{"stats":{"compile_requests":1}}'])
def test_broken_json_of_sccache_is_not_understood(text: str) -> None:
    assert parse_sccache(text) is None


def test_ninja_names_what_failed_and_why_it_stopped() -> None:
    run = parse_ninja(
        "[12/90 13%] Linking a\nFAILED: [code=137] lib/a.dylib lib/b.dylib \n"
        "ninja: build stopped: interrupted by user.\n"
    )

    assert run is not None
    assert (run.done, run.total, run.stopped) == (12, 90, True)
    assert run.failed == (FailedStep(outputs=("lib/a.dylib", "lib/b.dylib"), code=137),)


def test_ninjas_log_gives_the_slowest_outputs() -> None:
    log = parse_ninja_log(
        "# ninja log v7\n0\t900\t1\ta.o\tff\n0\t5000\t1\tb.o\tff\n10\t20\t2\tb.o\tff\n0\t700\t1\tc.o\tff\n0\t1"
    )

    assert log is not None
    assert (log.entries, log.duplicates) == (4, 1)
    assert log.slowest(2) == (("a.o", 0.9), ("c.o", 0.7))


@pytest.mark.parametrize("head", ["# ninja log v4", "# ninja log v8", "# some log v6", ""])
def test_a_ninja_log_of_another_form_is_not_understood(head: str) -> None:
    assert parse_ninja_log(f"{head}\n0\t900\t1\ta.o\tff\n") is None


def test_an_empty_ninja_log_is_understood() -> None:
    log = parse_ninja_log("# ninja log v6\n")

    assert log is not None
    assert log.facts() == {"version": 6, "entries": 0, "outputs": 0, "duplicates": 0}


def test_pips_wheel_is_made_only_once_pip_says_so() -> None:
    created = "  Created wheel for torch: filename=torch-2.9.1-cp313-cp313-macosx_14_0_arm64.whl size=74 sha256=00\n"

    unsure, sure = parse_pip_wheel(created), parse_pip_wheel(created + "Successfully built torch\n")

    assert unsure is not None
    assert sure is not None
    assert (unsure.success, sure.success) == (False, True)


def test_libraries_are_foreign_unresolved_or_the_systems() -> None:
    listed = parse_listdeps(
        "@rpath/libc10.dylib\n/usr/lib/libc++.1.dylib\n/opt/local/lib/libz.1.dylib\n@loader_path/a.dylib\n"
    )

    assert listed is not None
    assert (listed.foreign, listed.unresolved, listed.system) == (
        ("/opt/local/lib/libz.1.dylib",),
        ("@rpath/libc10.dylib",),
        1,
    )
    assert listed.finding is None


def test_codesigns_silence_is_good_only_with_its_exit() -> None:
    good = parse_codesign_verify("", exit=0)

    assert good is not None
    assert good.ok
    assert parse_codesign_verify("") is None
    assert parse_codesign_verify("", exit=1) is None
    assert parse_codesign_verify("x.dylib: No such file or directory", exit=1) is None


def test_one_bad_file_among_good_ones_is_named() -> None:
    good = "a.dylib: valid on disk\na.dylib: satisfies its Designated Requirement\n"
    check = parse_codesign_verify(good + "b.dylib: code object is not signed at all\n")

    assert check is not None
    assert check.facts() == {"tool": "codesign --verify", "ok": False, "reason": "not signed", "bad": ["b.dylib"]}
