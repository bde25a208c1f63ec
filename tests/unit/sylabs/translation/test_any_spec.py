"""Whatever an API server lets through becomes a job or is refused by a field that the object has or should have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slinky_api.crd.structural import structural
from slinky_api.errors import InvalidObjectError
from slinky_api.resource import Resource
from slinky_api.sylabs.common import OldJob
from slinky_operator.jobs import translation as submissions
from slinky_operator.jobs.images.runtimes import Runtime
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation.site import Placement, Site
from slinky_operator.sylabs.translation.slurmjob import translate
from slinky_operator.sylabs.translation.status import refused
from tests.support.from_schema import values
from tests.support.old_job_kinds import KINDS, manifest, parsed

SITES = st.builds(
    Site,
    labels=st.just({"a=a": Placement(features="f"), "a=1": Placement("p")}),
    runtime=st.sampled_from(Runtime),
    is_folder_shared=st.booleans(),
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "image": st.sampled_from(["docker://a", "library://a", "local.file/a", "a"]),
    "nodeSelector": st.dictionaries(
        st.sampled_from(["a", "wlm.sylabs.io/partition", "type"]),
        st.sampled_from(["a", 1, "virtual-kubelet"]),
        max_size=2,
    ),
    "results": st.just({"from": "a", "mount": {"persistentVolumeClaim": {"claimName": "a"}}}),
}
"""Values beside the random ones, so that some specs become jobs."""


@pytest.mark.parametrize(("resource", "model"), KINDS, ids=lambda each: getattr(each, "full_name", ""))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), site=SITES)
def test_a_spec_becomes_a_job_or_is_refused_by_a_field(
    resource: Resource, model: type[OldJob], data: st.DataObject, site: Site
) -> None:
    schema = structural(model)["properties"]["spec"]
    spec = data.draw(values(schema))
    for name in data.draw(st.sets(st.sampled_from(sorted(LIKELY.keys() & schema["properties"].keys())))):
        spec[name] = data.draw(LIKELY[name])
    why: InvalidObjectError | InvalidJob | None = None
    found = script = None
    try:
        found = translate(parsed(manifest(resource, **spec)).spec, site)
        script = submissions.translate(found.spec, name="sample").job.script
    except (InvalidObjectError, InvalidJob) as error:
        why = error
    if why is not None:
        assert why.field.startswith("spec.")
        assert refused(why, generation=1).status == "Failed"
    else:
        assert script
        assert found
