"""Python packages of an image are found by what they say of themselves."""

from __future__ import annotations

from pathlib import Path

from hack.release.contents.sboms import python_packages


def package(site: Path, name: str, version: str, *more: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *more])
    )


def test_a_package_has_its_address_and_its_licence(tmp_path: Path) -> None:
    site = tmp_path / "opt/x/lib/python3.13/site-packages"
    package(site, "Typing_Extensions", "4.1", "License-Expression: PSF-2.0")
    package(site, "kopf", "1.2")
    first, second = python_packages(tmp_path)["components"]
    assert first["purl"] == first["bom-ref"] == "pkg:pypi/kopf@1.2"
    assert "licenses" not in first
    assert second["purl"] == "pkg:pypi/typing-extensions@4.1"
    assert second["licenses"] == [{"expression": "PSF-2.0"}]


def test_an_image_without_python_has_none(tmp_path: Path) -> None:
    assert python_packages(tmp_path)["components"] == []
