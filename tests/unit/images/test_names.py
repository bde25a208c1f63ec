"""Names, tags and versions of images."""

from __future__ import annotations

import pytest

from hack.images import build
from hack.images.errors import ImagesError, UnknownImageSet
from hack.images.names import (
    SETS,
    SLURM_SUITES,
    TEST_IMAGES,
    image_set,
    moved_notice,
    parse_version,
    series,
    slurm_set,
    slurm_tags,
    slurmd_oci_set,
)


def test_the_sets_are_those_others_ask_for() -> None:
    assert set(SETS) == {
        *("busybox", "slurm-24.11", "slurm-26.05", "slurmd-oci-24.11", "slurmd-oci-26.05"),
        *("mariadb", "identity", "operator"),
    }
    assert slurmd_oci_set("26.05") == SETS["slurmd-oci-26.05"]
    assert slurm_set("24.11").suite == "trixie"
    assert slurm_set("26.05").suite == "sid"


def test_images_for_tests_are_there_and_belong_to_a_set() -> None:
    for name, slurm in TEST_IMAGES.items():
        assert slurm in SLURM_SUITES
        context = build.REPOSITORY / "containers" / name
        assert (context / "Dockerfile").is_file()
        assert all(file.stat().st_mode & 0o111 for file in context.iterdir() if file.name != "Dockerfile")


def test_an_unknown_set_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownImageSet, match=r"no 'slurm-1'.*slurm-24\.11"):
        image_set("slurm-1")
    with pytest.raises(UnknownImageSet, match=r"no '25\.05'.*24\.11, 26\.05"):
        slurm_set("25.05")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("slurm-wlm 24.11.5\n", "24.11.5"),
        ("slurm 26.05.5", "26.05.5"),
        ("slurm-wlm 26.11.0-0rc1", "26.11.0"),
        ("slurm 26.11.0rc1", "26.11.0"),
    ],
)
def test_the_version_is_read_from_what_slurm_prints(text: str, version: str) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "slurm-wlm", "slurm 24.11"])
def test_no_version_is_an_error_with_the_words(text: str) -> None:
    with pytest.raises(ImagesError, match="no Slurm version in"):
        parse_version(text)


def test_tags_carry_the_real_version() -> None:
    assert series("24.11.5") == "24.11"
    assert slurm_tags("24.11", "24.11.5") == ["24.11", "24.11.5"]
    assert moved_notice("24.11", "24.11.5", "trixie") is None


def test_a_suite_that_moved_on_is_told_with_both_versions() -> None:
    assert slurm_tags("26.05", "26.11.1") == ["26.05", "26.11", "26.11.1"]
    notice = moved_notice("26.05", "26.11.1", "sid")
    assert notice is not None
    assert "26.11.1, not 26.05" in notice
