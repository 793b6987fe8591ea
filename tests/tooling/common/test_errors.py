"""The exit codes are a contract."""

from mps_build.common import errors


def test_every_cause_has_an_exit_code_and_a_name_of_its_own() -> None:
    causes = errors.MpsBuildError.__subclasses__()

    assert sorted(cause.exit_code for cause in causes) == list(range(2, 22))
    assert len({cause.cause for cause in causes}) == len(causes)
