"""What determines whether something is built."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from hack.images import build
from hack.images.cache import Cache
from hack.images.errors import NotRoot, UnknownImageSet
from hack.images.names import SETS
from hack.images.recipes.operator import ca_bundle, pip_settings

MAY = datetime.date(2026, 5, 1)
JUNE = datetime.date(2026, 6, 1)


def test_a_key_depends_on_the_set_and_on_the_month_of_its_debian(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    may = {name: build.set_key(cache, one, MAY) for name, one in SETS.items()}
    june = {name: build.set_key(cache, one, JUNE) for name, one in SETS.items()}
    assert len(set(may.values())) == len(SETS)
    assert {name for name in SETS if may[name] == june[name]} == {"busybox"}


def test_a_refresh_changes_the_keys_of_what_is_based_on_debian(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    before = build.set_key(cache, SETS["slurm-26.05"], MAY)
    cache.refresh(datetime.datetime(2026, 5, 2, tzinfo=datetime.UTC))
    assert build.set_key(cache, SETS["slurm-26.05"], MAY) != before


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("hack.images.build._today", lambda: MAY)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    return Cache(tmp_path / "slurm-operator" / "images")


def test_what_is_there_needs_neither_root_nor_words(home: Cache) -> None:
    one = SETS["slurm-24.11"]
    entry = home.entry(one.name, build.set_key(home, one, MAY))
    entry.mkdir(parents=True)
    (entry / "meta.json").write_text('{"slurm": "24.11.5"}')
    lines: list[str] = []
    assert build.ensure([one.name], lines.append) == {one.name: [entry / "slurm-24.11.tar"]}
    assert build.slurm_version("24.11", lines.append) == "24.11.5"
    assert lines == []


def test_building_without_root_is_refused_by_name(home: Cache) -> None:
    with pytest.raises(NotRoot, match=r"slurm-24\.11"):
        build.ensure(["slurm-24.11"], lambda _line: None)


def test_an_unknown_set_is_refused_before_anything_is_built(home: Cache) -> None:
    with pytest.raises(UnknownImageSet):
        build.ensure(["busybox", "slurm"], lambda _line: None)


def test_only_where_packages_come_from_is_taken_from_the_pip_settings() -> None:
    printed = (
        "global.cert='/ca.pem'\n"
        "global.index-url='https://pypi.example/simple'\n"
        ":env:.extra-index-url='https://a.example\\nhttps://b.example'\n"
        "global.find-links='/wheels'\n"
    )
    assert pip_settings(printed) == (
        "[global]\nindex-url = https://pypi.example/simple\nextra-index-url = https://a.example\n    https://b.example\n"
    )


def test_the_certificates_are_those_pip_would_use_here() -> None:
    assert ca_bundle({"PIP_CERT": "/a", "SSL_CERT_FILE": "/b"}) == Path("/a")
    assert ca_bundle({"SSL_CERT_FILE": "/b"}) == Path("/b")
    assert ca_bundle({}) == Path("/etc/ssl/certs/ca-certificates.crt")
