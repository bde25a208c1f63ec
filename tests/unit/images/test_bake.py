"""The file for docker buildx builds what `make images` builds: the same Dockerfiles, stages, suites and tags."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hcl2
import pytest

from hack.images.names import (
    DEFAULT_SUITE,
    MARIADB,
    REGISTRY,
    SLURM_IMAGES,
    SLURM_SUITES,
    SLURMD_OCI,
    SSSD,
)

ROOT = Path(__file__).parents[3]
OPTIONS = hcl2.SerializationOptions(strip_string_quotes=True, explicit_blocks=False, with_comments=False)


def read() -> dict[str, dict[str, Any]]:
    """The blocks of the file by kind and name."""
    with (ROOT / "containers/docker-bake.hcl").open(encoding="utf-8") as file:
        blocks = hcl2.load(file, serialization_options=OPTIONS)
    return {
        kind: {name: body for block in blocks[kind] for name, body in block.items()}
        for kind in ("variable", "group", "target")
    }


FILE = read()
TARGETS = FILE["target"]


def dockerfile(name: str) -> Path:
    target = TARGETS[name]
    path: Path = ROOT / target["context"] / target["dockerfile"]
    return path


def test_every_image_that_is_shipped_is_a_target() -> None:
    assert set(FILE["group"]["default"]["targets"]) == set(TARGETS) - {"common", "pyxis"}
    assert set(TARGETS) == {"common", "operator", "slurm", SLURMD_OCI, "mariadb", "sssd", "pyxis"}
    assert FILE["variable"]["REGISTRY"]["default"] == REGISTRY


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"common"}))
def test_a_target_has_a_dockerfile_and_what_all_have(name: str) -> None:
    target = TARGETS[name]
    text = dockerfile(name).read_text()
    assert target["inherits"] == ["common"]
    assert set(target.get("args", {})) <= set(re.findall(r"^ARG (\w+)", text, re.MULTILINE))
    assert set(target["labels"]) == {"org.opencontainers.image.version"}
    assert all(tag.startswith("${REGISTRY}/") for tag in target["tags"])


def test_the_matrix_is_the_daemons_and_the_releases() -> None:
    matrix = TARGETS["slurm"]["matrix"]
    assert tuple(matrix["daemon"]) == SLURM_IMAGES
    assert {one["version"]: one["suite"] for one in matrix["slurm"]} == SLURM_SUITES
    for name in (SLURMD_OCI, "pyxis"):
        assert TARGETS[name]["matrix"]["version"] == list(SLURM_SUITES)
    assert set(TARGETS["pyxis"]["matrix"]["image"]) <= set(SLURM_IMAGES)
    stages = re.findall(r"^FROM \S+ AS (\S+)$", dockerfile("slurm").read_text(), re.MULTILINE)
    assert set(SLURM_IMAGES) <= set(stages)


@pytest.mark.parametrize(("name", "tag"), [("mariadb", MARIADB), ("sssd", SSSD)])
def test_the_other_images_have_their_tags_and_suite(name: str, tag: str) -> None:
    assert TARGETS[name]["tags"] == [f"${{REGISTRY}}/{name}:{tag}"]
    assert TARGETS[name]["labels"]["org.opencontainers.image.version"] == tag
    assert TARGETS[name]["args"]["DEBIAN_SUITE"] == DEFAULT_SUITE


def test_what_images_say_of_their_origin_comes_from_variables() -> None:
    labels = TARGETS["common"]["labels"]
    given = {key.removeprefix("org.opencontainers.image."): value.strip("${}") for key, value in labels.items()}
    assert given == {"source": "SOURCE", "revision": "REVISION", "created": "CREATED"}
    assert {*given.values(), "PLATFORMS", "OPERATOR_TAG", "REGISTRY"} == set(FILE["variable"])
