"""TRES and GRES: what slurmctld writes about them is read with the right units."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.notation import gres, tres
from slurm_client.notation.gres import Gres
from slurm_client.notation.tres import Tres


def test_tres_are_read_with_their_units() -> None:
    found = Tres.parse("cpu=4,mem=16G,node=2,billing=4,gres/gpu=3,gres/gpu:h100=2,gres/gpu:a100=1,license/matlab=1")
    assert (found.cpus, found.memory_mib, found.nodes, found.gpus) == (4, 16_384, 2, 3)
    assert found["gres/gpu:h100"] == 2
    assert found["license/matlab"] == 1
    assert found["fs/disk"] == 0
    assert [entry.key for entry in found][-1] == "license/matlab"


@pytest.mark.parametrize(
    ("text", "mib"),
    [("512", 512), ("512M", 512), ("1.50G", 1536), ("1T", 1_048_576), ("1K", 1), ("2048K", 2), ("0", 0)],
)
def test_memory_is_in_mib(text: str, mib: int) -> None:
    assert Tres.parse(f"mem={text}").memory_mib == mib


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gres/gpu:2", 2),
        ("gres/gpu", 1),
        ("gres:gpu:h100:2", 2),
        ("gres/gpu:h100", 1),
        ("gres/gpu:h100:2,gres/gpu:a100:1", 3),
        ("gres/gpu=4K", 4096),
    ],
)
def test_wishes_for_gpus_are_counted(text: str, gpus: int) -> None:
    assert Tres.parse(text).gpus == gpus


@pytest.mark.parametrize("text", ["", "(null)", "N/A"])
def test_nothing_is_no_resource(text: str) -> None:
    assert tuple(Tres.parse(text)) == ()
    assert gres.parse(text) == ()


@pytest.mark.parametrize("text", ["cpu=", "=4", "cpu=4,,mem=1", "cpu=four", "mem=1X", "cpu=-1", "cpu 4", "a" * 70_000])
def test_what_are_no_tres_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"resource|count"):
        Tres.parse(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gpu:h100:8(S:0-1)", Gres("gpu", "h100", 8, sockets=(0, 1))),
        ("gpu:2(IDX:0,3)", Gres("gpu", "", 2, indices=(0, 3))),
        ("gpu:h100:0(IDX:N/A)", Gres("gpu", "h100", 0, indices=())),
        ("gpu", Gres("gpu")),
        ("gpu:h100", Gres("gpu", "h100")),
        ("gres:gpu:1", Gres("gpu")),
        ("craynetwork:no_consume:4", Gres("craynetwork", "", 4, shared=True)),
        ("shard:h100:4(2/4,0/4)", Gres("shard", "h100", 4, detail="2/4,0/4")),
        ("gpu:a100:4(IDX:0-2,5)", Gres("gpu", "a100", 4, indices=(0, 1, 2, 5))),
        ("bandwidth:lustre:4K", Gres("bandwidth", "lustre", 4096)),
        ("gpu:1080:2", Gres("gpu", "1080", 2)),
    ],
)
def test_gres_are_read(text: str, wanted: Gres) -> None:
    assert gres.parse(text) == (wanted,)
    assert gres.parse(str(wanted)) == (wanted,)


def test_commas_in_parentheses_split_nothing() -> None:
    found = gres.parse("gpu:h100:2(IDX:0,3),shard:1,nic:2(S:0,1)")
    assert [(each.name, each.count) for each in found] == [("gpu", 2), ("shard", 1), ("nic", 2)]


@pytest.mark.parametrize(
    "text", ["gpu:", "gpu(", "gpu,,nic", ",gpu", "gpu,", "gpu:a:b:2", "gpu:2(IDX:3-1)", "gpu(S:0-99999)"]
)
def test_what_are_no_gres_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"resource|indices"):
        gres.parse(text)


@given(st.text(alphabet="gpu:nic/h=100()SIDX,-KMG. ", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (gres.parse, Tres.parse):
        try:
            found = tuple(parse(text))
        except ValueError:
            # Refused, which any text may be; an error of another kind fails the test.
            continue
        assert tuple(parse(",".join(map(str, found)))) == found


def test_a_number_with_a_unit() -> None:
    assert tres.count("4K") == 4096
    assert tres.count("1G", mib=True) == 1024


def test_a_list_of_generic_resources_has_a_limited_number_of_indices() -> None:
    assert sum(len(one.indices or ()) for one in gres.parse("gpu:1(IDX:0-32767),gpu:1(IDX:0-32767)")) == 65_536
    for text in ("gpu:1(IDX:0-65535)," * 1_000 + "gpu:1", "gpu:1(S:0-65535)(IDX:0)"):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="too many indices"):
                gres.parse(text)
            assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
        finally:
            tracemalloc.stop()


def test_a_list_of_generic_resources_has_a_limited_number_of_entries() -> None:
    assert len(gres.parse(",".join(["gpu:1"] * gres.MOST))) == gres.MOST
    with pytest.raises(ValueError, match=f"more than {gres.MOST}"):
        gres.parse(",".join(["gpu:1"] * (gres.MOST + 1)))
