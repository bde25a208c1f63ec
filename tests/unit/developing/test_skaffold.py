"""skaffold's files: what they name exists, and the charts take the values that they set.

skaffold itself reads and renders them in ``make skaffold-check``.
"""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.developing import registry
from hack.developing.loop_check import PROFILES
from hack.packaging.render import OPERATOR_CHART, ROOT, SLURM_CHART, render
from slinky_operator.settings import Settings

VALUES = ROOT / "hack" / "developing" / "values"


def config(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / folder / "skaffold.yaml").read_text(encoding="utf-8"))
    return found


def variants(folder: str) -> list[dict[str, Any]]:
    """The file alone, and with each profile that replaces a part of it."""
    plain = config(folder)
    return [plain, *({**plain, **profile} for profile in plain["profiles"])]


def path(folder: str, *parts: str) -> Path:
    return Path(os.path.normpath(ROOT.joinpath(folder, *parts)))


@pytest.mark.parametrize("folder", PROFILES)
def test_each_file_has_the_profiles_that_the_check_renders(folder: str) -> None:
    assert [one["name"] for one in config(folder)["profiles"]] == list(PROFILES[folder])


@pytest.mark.parametrize("folder", PROFILES)
def test_what_is_built_and_copied_exists(folder: str) -> None:
    artifacts = [one for variant in variants(folder) for one in variant.get("build", {}).get("artifacts", ())]
    assert bool(artifacts) == (folder != "helm/slurm")
    for one in artifacts:
        context = one["context"]
        assert path(folder, context) == ROOT
        if "docker" in one:
            assert path(folder, context, one["docker"]["dockerfile"]).is_file()
        else:
            assert one["image"].startswith(f"{registry.ADDRESS}/")
            assert all(path(folder, context, each).exists() for each in one["custom"]["dependencies"]["paths"])
        for rule in one.get("sync", {}).get("manual", ()):
            assert any(fnmatch.fnmatch(str(file.relative_to(ROOT)), rule["src"]) for file in ROOT.rglob("a*.py")), rule


@pytest.mark.parametrize("folder", PROFILES)
def test_the_charts_take_the_values_that_are_set(folder: str) -> None:
    for variant in variants(folder):
        (release,) = variant["deploy"]["helm"]["releases"]
        chart = path(folder, release["chartPath"])
        own = yaml.safe_load((VALUES / f"{chart.name}.yaml").read_text(encoding="utf-8"))
        flags = [f"--set={name}={value}" for name, value in release.get("setValues", {}).items()]
        # Of the templates only the name of the value counts here.
        flags += [f"--set={name}=x" for name in release.get("setValueTemplates", {})]
        flags = [flag.replace("=True", "=true") for flag in flags]
        objects = render(chart, own if "valuesFiles" in release else {}, extra=flags, namespace=release["namespace"])
        forwarded = {one["resourceName"] for one in variant.get("portForward", ())}
        if chart == OPERATOR_CHART:
            (deployment,) = (one for one in objects if one["kind"] == "Deployment")
            assert forwarded <= {deployment["metadata"]["name"]}
            (container,) = deployment["spec"]["template"]["spec"]["containers"]
            assert container["image"] == "x:x" or deployment["spec"]["replicas"] == 0
            assert Settings.load(container["args"], {}).log_level == "DEBUG" or deployment["spec"]["replicas"] == 0
        else:
            assert chart == SLURM_CHART
            (cluster,) = (one["metadata"]["name"] for one in objects if one["kind"] == "Cluster")
            assert forwarded in (set(), {"slurm-restapi"})
            assert cluster == "slurm-operator"  # the name of the release here


def test_values_of_developers_admit_a_local_operator() -> None:
    own = yaml.safe_load((VALUES / "slurm.yaml").read_text(encoding="utf-8"))
    (policy,) = (one for one in render(SLURM_CHART, own) if one["kind"] == "NetworkPolicy")
    assert {"ipBlock": {"cidr": "0.0.0.0/0"}} in policy["spec"]["ingress"][0]["from"]
