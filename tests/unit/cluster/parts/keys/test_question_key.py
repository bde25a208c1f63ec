"""With which key of auth/slurm slurmds are asked: the one that the daemons are known to have, and no other."""

from __future__ import annotations

import pytest

from slinky_operator.cluster.parts.keys import question_key
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.signed_messages import SharedKey
from tests.unit.cluster.parts.keys.key_model import key_set
from tests.unit.cluster.parts.keys.lifecycle.worlds import generated
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import WALL

SET = {"auth": {"slurmKeyRef": {"name": "mine", "key": "slurm.jwks"}}}


@pytest.mark.parametrize(("file", "kid"), [("slurm.jwks", "generated"), ("slurm.key", "")])
def test_the_connection_has_the_key_that_daemons_have(file: str, kid: str) -> None:
    world = generated(file)
    assert world.slurm is not None
    assert world.slurm.slurm_key == SharedKey(kid, b"k" * 128)


def test_of_a_key_set_it_is_the_default_of_the_set_that_daemons_have() -> None:
    world = settled({})
    world.raw["spec"] |= SET
    keys = Keys({naming.SLURM_KEY: key_set("a", "B")})
    assert question_key.of_questions(world.snapshot(), keys, WALL) == SharedKey("b", b"b" * 32)


def test_without_a_known_key_none_is_asked() -> None:
    assert question_key.of_questions(settled({}).snapshot(), Keys(), WALL) is None
    keys = Keys({naming.SLURM_KEY: b"no set"})
    world = settled({})
    world.raw["spec"] |= SET
    assert question_key.of_questions(world.snapshot(), keys, WALL) is None
