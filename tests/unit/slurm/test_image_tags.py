"""Releases are compared as far as tags show them; what they do not show is not allowed."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.image_tags import is_within


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
