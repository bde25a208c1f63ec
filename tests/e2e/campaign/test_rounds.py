"""A few rounds of the campaign in every run: users' jobs beside faults and mistakes (docs/reliability.md).

They have a local Kubernetes of their own, beside those of the other end-to-end tests. Which seeds is fixed: a run that
fails here has a story that anybody can play again. Long campaigns draw new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.campaign.kept import KEPT, SECONDS
from tests.campaign.plan import make
from tests.campaign.player import Player

NAME: Final = "e2e-campaign"

# A site that comes up beside other tests, and a round that is given up after a quarter of an hour.
pytestmark = pytest.mark.timeout(2400)


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    one = Player(NAME, stories=None, rounds=None, fresh=len(KEPT))
    yield one
    one.down()


@pytest.mark.parametrize("seed", KEPT)
def test_no_job_is_harmed_and_all_comes_to_rest(player: Player, seed: int) -> None:
    assert player.confirmed(make(seed, SECONDS)) == []
