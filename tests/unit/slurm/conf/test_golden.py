"""Each option renders as its golden file says, and there is no golden file that nothing renders."""

from __future__ import annotations

import pytest

from tests.unit.slurm.conf.goldens import CASES, FOLDER, text_of


@pytest.mark.parametrize("name", CASES)
def test_each_option_renders_what_is_written_down(name: str) -> None:
    assert text_of(CASES[name].render()) == (FOLDER / f"{name}.txt").read_text()


def test_every_golden_has_its_case() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(CASES)


def test_no_two_options_render_the_same() -> None:
    hashes = {name: case.render().hash for name, case in CASES.items()}
    assert len(set(hashes.values())) == len(hashes)
