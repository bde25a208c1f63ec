"""The workflow of a release publishes all that it has, and a step that fails ends it; others keep their reports."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hack.release.parameters import ROOT

TEXT = (ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8")
JOB: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]["release"]
COMMANDS = "\n".join(step["run"] for step in JOB["steps"] if "run" in step)


def test_a_command_before_a_pipe_may_not_fail() -> None:
    # GitHub's own default has no pipefail.
    assert JOB["defaults"]["run"]["shell"] == "bash"
    assert not any("shell" in step for step in JOB["steps"])


def test_the_registry_is_in_lower_case_before_it_is_used() -> None:
    assert "REGISTRY" not in JOB["env"]
    assert COMMANDS.index("REGISTRY=ghcr.io/${GITHUB_REPOSITORY,,}") < COMMANDS.index("make release")


def test_what_is_attached_is_what_is_summed_and_signed() -> None:
    (folder,) = re.findall(r'--notes-file notes\.md ("dist/\$VERSION-assets"/\*)', COMMANDS)
    assert COMMANDS.index("make release-assets") < COMMANDS.index("cosign sign-blob") < COMMANDS.index(folder)
    # Before anything is published.
    assert COMMANDS.index("hack.release notes > notes.md") < COMMANDS.index("make release")


def test_a_job_that_may_sign_takes_actions_by_commit() -> None:
    assert JOB["permissions"]["id-token"] == "write"
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) == sum("uses" in step for step in JOB["steps"])
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_folders_with_a_dot_are_uploaded() -> None:
    found = 0
    for file in (ROOT / ".github/workflows").glob("*.yaml"):
        for job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values():
            for step in job["steps"]:
                if "upload-artifact" in step.get("uses", "") and step["with"]["path"].startswith("."):
                    found += 1
                    assert step["with"]["include-hidden-files"] is True, file
    assert found
