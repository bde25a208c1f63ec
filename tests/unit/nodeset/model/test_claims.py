"""Claims of pods: their names, their owners, and which are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.claims import Retention, VolumeClaim
from slinky_operator.nodeset.model.pods import pod_names
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.pod_spec import builder, generated, validation

KEY = labels.ANNOTATION_CLAIM_RETENTION
DATA = {"metadata": {"name": "data", "labels": {"team": "x"}}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}


def nodeset(*templates: dict[str, Any], **spec: Any) -> NodeSet:
    given = {"clusterName": "c", "replicas": 2, "volumeClaimTemplates": list(templates), **spec}
    return NodeSet.parse({"metadata": {"name": "a", "namespace": "ns", "uid": "set-uid"}, "spec": given})


def of(number: int, **values: Any) -> VolumeClaim:
    return VolumeClaim(**({"name": f"data-a-{number}", "uid": f"u{number}", "pod": f"a-{number}"} | values))


def build(owner: NodeSet) -> dict[str, Any]:
    cluster = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cu"}, "spec": {}})
    place = pod_names.of_ordinal(owner, 3)
    return builder.build(
        owner, cluster, place=place, revision="r", guard_uid="g", defaults=generated.Defaults(image="slurmd")
    )


def test_a_claim_is_named_like_that_of_a_stateful_set_and_has_no_owner() -> None:
    (made,) = claims.build(nodeset(DATA), "a-3")

    assert made["metadata"]["name"] == "data-a-3"
    assert "ownerReferences" not in made["metadata"]
    assert made["spec"] == DATA["spec"]
    assert made["metadata"]["labels"]["team"] == "x"
    assert made["metadata"]["labels"][labels.LABEL_NODESET_NAME] == "a"
    made["metadata"]["uid"] = "u"
    assert claims.read(made) == VolumeClaim("data-a-3", "u", "a-3")


def test_a_claim_of_an_earlier_nodeset_of_that_name_is_found_again() -> None:
    (made,) = claims.build(nodeset(DATA), "a-3")

    assert claims.is_ours(nodeset(DATA), made)
    assert not claims.is_ours(nodeset(DATA), {"metadata": {"name": "data-a-3"}})


def test_a_pod_mounts_its_own_claims_in_place_of_volumes_of_that_name() -> None:
    spool = {"metadata": {"name": generated.SPOOL_VOLUME}}

    volumes = {volume["name"]: volume for volume in build(nodeset(DATA, spool))["spec"]["volumes"]}

    assert volumes["data"]["persistentVolumeClaim"] == {"claimName": "data-a-3"}
    assert volumes[generated.SPOOL_VOLUME] == {
        "name": generated.SPOOL_VOLUME,
        "persistentVolumeClaim": {"claimName": f"{generated.SPOOL_VOLUME}-a-3"},
    }
    assert "emptyDir" in volumes[generated.RUN_VOLUME]


@pytest.mark.parametrize(
    ("templates", "place", "word"),
    [
        ([{"metadata": {}}], 0, "missing"),
        ([DATA, DATA], 1, "twice"),
        ([DATA, {"metadata": {"name": generated.KEY_VOLUME}}], 1, "operator's"),
        ([{"metadata": {"name": "A.b"}}], 0, "DNS label"),
    ],
)
def test_templates_that_cannot_be_used_are_refused_by_field(
    templates: list[dict[str, Any]], place: int, word: str
) -> None:
    with pytest.raises(validation.RefusedTemplate) as caught:
        build(nodeset(*templates))

    (problem,) = caught.value.problems
    assert problem.field == f"spec.volumeClaimTemplates[{place}].metadata.name"
    assert word in problem.reason


def test_ordinals_whose_claims_wait_come_first() -> None:
    held = {0, 4}

    assert claims.next_ordinals(nodeset(DATA), [of(0), of(2), of(4)], held, 2) == [2, 1]
    assert claims.next_ordinals(nodeset(DATA), [of(7), of(5)], held, 1) == [5]
    assert claims.next_ordinals(nodeset(DATA), [of(5, deleting=True), of(7)], held, 1) == [7]
    assert claims.next_ordinals(nodeset(DATA), [], held, 3) == [1, 2, 3]
    assert claims.next_ordinals(nodeset(DATA), [of(7)], held, 0) == []


def test_a_pod_that_was_lost_comes_back_to_its_claim_before_one_that_a_scale_in_took() -> None:
    kept = of(1, retention=Retention.RETAIN)

    assert claims.next_ordinals(nodeset(DATA), [kept, of(2)], {0}, 1) == [2]
    assert claims.next_ordinals(nodeset(DATA), [kept, of(2)], {0}, 2) == [2, 1]


def test_what_is_written_on_a_claim_is_read_back_and_never_taken_for_less() -> None:
    (made,) = claims.build(nodeset(DATA), "a-3")
    made["metadata"]["uid"] = "u"

    def read(text: str) -> Retention | None:
        return claims.read(made | {"metadata": made["metadata"] | {"annotations": {KEY: text}}}).retention

    assert claims.read(made).retention is None
    assert [read(one.value) for one in Retention] == list(Retention)
    assert read("delete") is Retention.RETAIN


def test_a_template_cannot_mark_its_claims() -> None:
    marked = {**DATA, "metadata": {"name": "data", "annotations": {KEY: "Delete", "team": "x"}}}

    (made,) = claims.build(nodeset(marked), "a-3")

    assert made["metadata"]["annotations"] == {"team": "x"}


def test_a_pod_waits_for_a_claim_that_is_going() -> None:
    assert "data-a-1 " in (claims.why_blocked([of(1, deleting=True)], "a-1") or "")
    assert claims.why_blocked([of(1), of(2, deleting=True)], "a-1") is None


def test_only_the_names_of_templates_are_part_of_the_revision() -> None:
    larger = {**DATA, "spec": {"resources": {"requests": {"storage": "2Gi"}}}}

    assert revision.of(nodeset(DATA)) == revision.of(nodeset(larger))
    assert revision.of(nodeset(DATA)) != revision.of(nodeset())
    restored = revision.restored(nodeset(larger), {"claims": ["data", "gone"]})
    assert claims.names(restored, "a-0") == ["data-a-0", "gone-a-0"]
    assert restored.spec.volume_claim_templates[0] == larger
