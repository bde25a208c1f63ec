"""Which revisions are recorded, and which one a pod is created from."""

from __future__ import annotations

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.revisions import revision, revision_records
from slinky_operator.nodeset.model.revisions.revision_records import Recorded, Revision, RevisionChanges
from tests.unit.nodeset.builders import nodeset, updating

NEW = Revision("new", current="old")


def test_what_is_held_back_is_made_anew_as_it_was() -> None:
    assert revision_records.target(1, updating(partition=2), NEW) == "old"
    assert revision_records.target(2, updating(partition=2), NEW) == "new"
    assert revision_records.target(7, updating(paused=True), NEW) == "old"
    assert revision_records.target(0, nodeset(updateStrategy={"type": "OnDelete"}), NEW) == "new"
    assert revision_records.target(0, updating(partition=2), Revision("new")) == "new"


def recorded(hash_: str, number: int) -> Recorded:
    return Recorded(f"a-{hash_}", f"uid-{hash_}", hash_, number, {"image": hash_})


def test_what_is_written_is_read_back() -> None:
    owner = nodeset(image="x")
    obj = revision_records.build(owner, "h", revision.content(owner), 3)
    obj["metadata"]["uid"] = "u"

    assert revision_records.read(obj) == Recorded("a-h", "u", "h", 3, {"image": "x"})
    assert [one["uid"] for one in obj["metadata"]["ownerReferences"]] == ["set-uid"]
    assert obj["metadata"]["labels"][labels.LABEL_NODESET_UID] == "set-uid"


def test_a_new_spec_becomes_the_newest_revision() -> None:
    kept = [recorded("old", 4)]

    assert revision_records.upkeep("new", kept, current="old", carried={"old"}, limit=0) == RevisionChanges(record=5)
    assert revision_records.upkeep("new", [], current="new", carried=(), limit=0) == RevisionChanges(record=1)


def test_an_older_spec_finds_its_revision_again() -> None:
    old, new = recorded("old", 1), recorded("new", 2)

    assert revision_records.upkeep("old", [old, new], current="new", carried={"new"}, limit=0) == RevisionChanges(
        renumber=(old, 3)
    )
    assert revision_records.upkeep("new", [old, new], current="old", carried=(), limit=0) == RevisionChanges()


def test_the_oldest_go_beyond_the_limit_and_none_that_a_pod_carries() -> None:
    kept = [recorded(name, number) for number, name in enumerate(["carried", "first", "second", "third", "old", "new"])]

    found = revision_records.upkeep("new", kept, current="old", carried={"carried"}, limit=1)

    assert [one.hash for one in found.drop] == ["first", "second"]


def test_the_revision_before_an_update_is_the_last_one_that_all_had() -> None:
    owner = NodeSet.parse(
        {
            "metadata": {"name": "a", "namespace": "ns"},
            "spec": {"clusterName": "c", "replicas": 1},
            "status": {"nodeSetHash": "old"},
        }
    )

    assert revision_records.current(owner, "new", [recorded("old", 1)]) == "old"
    assert revision_records.current(owner, "new", []) == "new"
    assert revision_records.current(nodeset(), "new", [recorded("old", 1)]) == "new"
