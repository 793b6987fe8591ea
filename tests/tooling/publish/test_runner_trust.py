"""Which events, refs and labels the fleet takes: the session, as the hook on the host."""

from __future__ import annotations

import pytest
from mps_build.common.errors import HostError, UsageError
from mps_build.publish.fleet import check_labels, check_ref, check_trust


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target", "workflow_run", ""])
def test_the_session_refuses_what_the_hook_refuses(event: str) -> None:
    environ = {"GITHUB_REPOSITORY": "o/n", "MPS_BUILD_REPOSITORIES": "o/n"}

    assert check_trust(environ | {"GITHUB_EVENT_NAME": "push"}) == "push"
    with pytest.raises(HostError, match="may not use a Mac"):
        check_trust(environ | {"GITHUB_EVENT_NAME": event})
    with pytest.raises(HostError, match="does not serve"):
        check_trust({"GITHUB_REPOSITORY": "o/n", "GITHUB_EVENT_NAME": "push"})


def test_only_refs_that_upstream_protects_are_built() -> None:
    for ref in ("a" * 40, "v2.15.0", "v2.16.0-rc1", "nightly", "viable/strict", "main", "release/2.16"):
        assert check_ref(ref) == ref
    for ref in ("refs/pull/1/head", "a" * 39, "v2.15.0;id", "--upload-pack=x", "gh/someone/1/head", "main\n", ""):
        with pytest.raises(UsageError, match="not on the list"):
            check_ref(ref)


@pytest.mark.parametrize("text", ["", "{}", '["macos-15"]', '["self-hosted", 1]', '["self-hosted", "a b"]'])
def test_labels_are_those_of_a_self_hosted_mac(text: str) -> None:
    with pytest.raises(UsageError, match="runner labels"):
        check_labels(text, bare_metal=True)
