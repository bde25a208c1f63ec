"""Which lines of slurm.conf make a step of each job for sessions."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.jobs import prolog_flags


@pytest.mark.parametrize(
    ("text", "has"),
    [
        (prolog_flags.CONTAIN, True),
        ("KillWait=5 prologflags = Alloc,contain # why", True),
        ("PrologFlags=X11", True),
        ("PrologFlags=Alloc", False),
        ("#PrologFlags=Contain", False),
        ("PrologFlags=Contain\nPrologFlags=Alloc", False),
        ("", False),
        ("not a line", False),
    ],
)
def test_the_flag_is_found_as_slurm_reads_it(text: str, has: bool) -> None:
    assert prolog_flags.has_contain(text) is has
