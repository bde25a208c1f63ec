"""The workflow of a release publishes all that it has, and a step that fails ends it; others keep their reports."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from hack.release.parameters import ROOT

TEXT = (ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8")
JOBS: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]
JOB: dict[str, Any] = JOBS["release"]


def commands(job: str) -> str:
    """What a job runs."""
    return "\n".join(step["run"] for step in JOBS[job]["steps"] if "run" in step)


COMMANDS = commands("release")


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_command_before_a_pipe_may_not_fail(job: dict[str, Any]) -> None:
    # GitHub's own default has no pipefail.
    assert job["defaults"]["run"]["shell"] == "bash"
    assert not any("shell" in step for step in job["steps"])


@pytest.mark.parametrize("job", JOBS)
def test_the_registry_is_in_lower_case_before_it_is_used(job: str) -> None:
    assert "REGISTRY" not in JOBS[job]["env"]
    assert commands(job).index("REGISTRY=ghcr.io/${GITHUB_REPOSITORY,,}") < commands(job).index("make release ")


def test_images_are_pushed_once_they_are_checked_and_named_once_all_are_there() -> None:
    arm64 = commands("arm64")
    assert arm64.index("make release-images-check") < arm64.index("hack.release publish")
    assert "--index" not in arm64
    assert JOB["needs"] == ["arm64"]
    assert COMMANDS.index("make release-check") < COMMANDS.index("hack.release publish --index amd64 arm64")
    assert COMMANDS.index("make audit-images") < COMMANDS.index("hack.release publish")
    assert COMMANDS.index("tee digests.txt") < COMMANDS.index("cosign sign --yes < digests.txt")


def test_what_is_attached_is_what_is_summed_and_signed() -> None:
    (folder,) = re.findall(r'--notes-file notes\.md ("dist/\$VERSION-assets"/\*)', COMMANDS)
    assert COMMANDS.index("make release-assets") < COMMANDS.index("cosign sign-blob") < COMMANDS.index(folder)
    # Before anything is published.
    assert COMMANDS.index("hack.release notes > notes.md") < COMMANDS.index("make release")


def test_a_job_that_may_sign_takes_actions_by_commit() -> None:
    assert JOB["permissions"]["id-token"] == "write"
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) == sum("uses" in step for job in JOBS.values() for step in job["steps"])
    for action in used:
        assert re.fullmatch(r"[\w-]+(/[\w-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_folders_with_a_dot_are_uploaded() -> None:
    found = 0
    for file in (ROOT / ".github/workflows").glob("*.yaml"):
        for job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values():
            for step in job["steps"]:
                if "upload-artifact" in step.get("uses", "") and step["with"]["path"].startswith("."):
                    found += 1
                    assert step["with"]["include-hidden-files"] is True, file
    assert found
