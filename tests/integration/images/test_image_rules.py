"""Images of Slurm and MariaDB as they were built: labels, sizes, users."""

from __future__ import annotations

import pytest

from tests.support import image_rules


@pytest.mark.parametrize("name", ["slurm-24.11", "slurm-26.05", "slurmd-oci-24.11", "slurmd-oci-26.05", "mariadb"])
@pytest.mark.full
def test_an_image_says_what_it_is_and_is_not_too_large(name: str) -> None:
    image_rules.check(name)
