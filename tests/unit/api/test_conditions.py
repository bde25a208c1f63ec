"""Conditions keep their time until their status changes, and annotations are found under either name."""

from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from slinky_api import conditions, labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1 import Condition

THEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = THEN + timedelta(hours=1)


def condition(
    kind: str, status: Literal["True", "False", "Unknown"], reason: str = "", time: datetime | None = None
) -> Condition:
    return Condition(type=kind, status=status, reason=reason, last_transition_time=time)


def test_the_time_stays_while_the_status_stays() -> None:
    merged = conditions.merge([condition("Ready", "True", "A", THEN)], [condition("Ready", "True", "B")], NOW)
    assert merged == (condition("Ready", "True", "B", THEN),)


def test_the_time_moves_when_the_status_does() -> None:
    merged = conditions.merge([condition("Ready", "True", "A", THEN)], [condition("Ready", "False", "A")], NOW)
    assert merged == (condition("Ready", "False", "A", NOW),)


def test_the_order_is_fixed_and_unnamed_types_go() -> None:
    wanted = [condition("B", "True"), condition("A", "True")]
    merged = conditions.merge([condition("C", "True", time=THEN)], wanted, NOW)
    assert [found.type for found in merged] == ["A", "B"]
    assert conditions.merge(merged, wanted, NOW + timedelta(hours=1)) == merged


def test_a_type_is_found_or_not() -> None:
    have = [condition("A", "True"), condition("B", "Unknown")]
    assert conditions.is_true(have, "A")
    assert not conditions.is_true(have, "B")
    assert not conditions.is_true(have, "C")
    assert conditions.find(have, "B") == have[1]


def test_annotations_are_read_under_the_later_name_first() -> None:
    assert labels.read({"slinky.slurm.net/pod-cordon": "true"}, labels.ANNOTATION_POD_CORDON) == "true"
    both = {"slinky.slurm.net/pod-cordon": "true", "nodeset.slinky.slurm.net/pod-cordon": "false"}
    assert labels.read(both, labels.ANNOTATION_POD_CORDON) == "false"
    assert not labels.is_true(both, labels.ANNOTATION_POD_CORDON)
    assert labels.read(None, labels.ANNOTATION_POD_CORDON) is None
    assert labels.read({"slinky.slurm.net/spec": "x"}, labels.ANNOTATION_TOPOLOGY_SPEC) is None


def test_names_of_slinky_are_spelled_as_there() -> None:
    assert labels.ANNOTATION_POD_DELETION_COST == "nodeset.slinky.slurm.net/pod-deletion-cost"
    assert labels.ANNOTATION_POD_DEADLINE == "nodeset.slinky.slurm.net/pod-deadline"
    assert labels.LABEL_POD_NAME == "nodeset.slinky.slurm.net/pod-name"
    assert labels.LABEL_POD_INDEX == "nodeset.slinky.slurm.net/pod-index"
    assert labels.FINALIZER_NODESET_DRAIN == "nodeset.slinky.slurm.net/drain"
    assert labels.FINALIZER_NODESET_CONFIG == "cluster.slinky.slurm.net/config"


def test_every_name_is_one_that_kubernetes_takes() -> None:
    names = [
        getattr(labels, name) for name in labels.__all__ if name.startswith(("LABEL_", "ANNOTATION_", "FINALIZER_"))
    ]
    assert len(names) == len(set(names))
    for name in names:
        assert len(name.rpartition("/")[2]) <= 63


def test_a_reason_of_a_later_release_is_kept_as_it_is() -> None:
    later = Reason("FromALaterRelease")
    assert later == "FromALaterRelease"
    assert later not in set(Reason)
    assert Reason("AsExpected") is Reason.AS_EXPECTED
    with pytest.raises(ValueError, match="3 is not a valid Reason"):
        Reason(3)  # type: ignore[arg-type]
