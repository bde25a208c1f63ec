"""Which step from one release of Slurm to another is possible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.slurm.releases import Release, is_within, problem_of_step


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("slurm-wlm 26.05.5", Release(26, 5, 5)),
        ("slurm 24.11.5\n", Release(24, 11, 5)),
        ("25.11", Release(25, 11)),
        ("slurm 25.05.0-0rc1", Release(25, 5, 0)),
        ("127.0.0.1", None),
        ("sh: slurmctld: not found", None),
        ("25.99.1", None),
        ("", None),
    ],
)
def test_a_release_is_found_in_what_a_daemon_says(text: str, release: Release | None) -> None:
    assert Release.read(text) == release


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("registry.example:5000/slurmctld:26.05.5-trixie", Release(26, 5, 5)),
        ("slurmctld:26.05", Release(26, 5)),
        ("slurmctld:latest", None),
        ("slurmctld@sha256:0123", None),
    ],
)
def test_the_tag_of_an_image_may_be_a_release(image: str, release: Release | None) -> None:
    assert Release.of_image(image) == release


@pytest.mark.parametrize(
    ("old", "new", "possible"),
    [
        ("24.11.5", "26.05.5", True),
        ("24.05.3", "26.05.5", False),
        ("26.05.5", "26.05.1", True),
        ("26.05.5", "25.11.9", False),
        ("23.11.1", "25.05.1", True),
        ("23.02.1", "25.05.1", False),
    ],
)
def test_steps(old: str, new: str, possible: bool) -> None:
    first, second = Release.read(old), Release.read(new)
    assert first is not None
    assert second is not None
    assert (problem_of_step(first, second) == "") is possible


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = Release.read(text)
    assert found is None or str(found)[:2].isdigit()


@pytest.mark.parametrize(
    ("image", "release", "within"),
    [
        ("a:26.05.5", "26.05.5", True),
        ("a:26.05.5-1", "26.05.10", True),
        ("a:26.05.6", "26.05.5", False),
        ("a:26.11.0", "26.05.5", False),
        ("a:26.05", "26.05.5", False),
        ("a:latest", "26.05.5", False),
        ("a:26.05.5", "", False),
        ("a:26.05.5", "26.05", False),
    ],
)
def test_an_image_is_of_a_release_or_of_an_older_one(image: str, release: str, within: bool) -> None:
    assert is_within(image, release) is within
