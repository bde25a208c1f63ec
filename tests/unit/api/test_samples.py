"""Each sample names its prerequisites at the top."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.localkube.paths import PROJECT

SAMPLES = sorted((PROJECT / "config" / "samples").rglob("*.yaml"))
REFERENCES = (
    *("secretRef", "slurmKeyRef", "jwtKeyRef", "secretName", "configFileRefs", "prologScriptRefs", "epilogScriptRefs"),
    *("configMapRef", "confRef", "claimName", "authorizedKeysRef"),
)


def referred(value: Any) -> Iterator[str]:
    """Names of the Secrets and ConfigMaps that an object names."""
    if isinstance(value, dict):
        for key, inside in value.items():
            if key in REFERENCES:
                for each in inside if isinstance(inside, list) else [inside]:
                    yield each["name"] if isinstance(each, dict) else each
            else:
                yield from referred(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from referred(inside)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_says_what_it_needs(path: Path) -> None:
    text = path.read_text()
    top = text[: text.index("apiVersion")]
    assert "# Needs" in top
    objects = list(yaml.safe_load_all(text))
    made = {f"{each['kind']} {each['metadata']['name']}" for each in objects}
    ours = [each["spec"] for each in objects if "spec" in each]
    needed = {name for spec in ours for name in referred(spec)}
    needed -= {each["metadata"]["name"] for each in objects if each["kind"] in {"ConfigMap", "Secret"}}
    needed |= {f"Cluster {spec['clusterName']}" for spec in ours if "clusterName" in spec}
    needed -= made
    assert {name for name in needed if name not in top} == set()
