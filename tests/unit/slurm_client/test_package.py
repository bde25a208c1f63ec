"""What the package offers at its top, and that nothing of it is paid for before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import slurm_client


@pytest.mark.parametrize("name", slurm_client.__all__)
def test_everything_offered_is_there(name: str) -> None:
    assert getattr(slurm_client, name) is not None
    assert name in dir(slurm_client)


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        slurm_client.nosuch  # noqa: B018 - it is the asking that fails


def test_a_word_of_the_package_is_imported_when_it_is_asked_for() -> None:
    asked = (
        "import sys, slurm_client\n"
        "assert [name for name in sys.modules if name.startswith('slurm_client.')] == []\n"
        "assert issubclass(slurm_client.errors.NotFound, slurm_client.SlurmError)\n"
        "assert slurm_client.JobSpec(name='a').name == 'a'\n"
        "assert 'slurm_client.client' not in sys.modules and 'httpx' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", asked], check=True)
