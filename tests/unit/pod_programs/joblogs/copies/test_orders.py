"""The orders of a pod that copies, its answer, and its tokens."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.pod_programs.joblogs import protocol, tokens
from slinky_operator.pod_programs.joblogs.copies import orders, permits, porter
from slinky_operator.pod_programs.joblogs.copies.events import Limits
from slinky_operator.pod_programs.joblogs.copies.orders import Copy, Place, Report
from slinky_operator.pod_programs.joblogs.copies.permits import Permit
from slinky_operator.pod_programs.joblogs.copies.porter import Time
from slinky_operator.pod_programs.joblogs.tokens import Grant, InvalidToken

KEY = bytes(range(64))
PERMIT = Permit("7", 1000, (1000,), "/data/a", 2_000_000_000, writes=False, mark="m", max_bytes=10, max_entries=10)
LIMITS = Limits(1000, 10)


def copy(folder: Path, source: str, target: str) -> Copy:
    place = Place(folder=str(folder))
    return Copy("results[0]", replace(place, path=source), replace(place, path=target), "m", LIMITS)


def test_a_permit_is_read_as_it_was_signed() -> None:
    assert permits.verify(permits.sign(PERMIT, KEY), KEY, now=1.0) == PERMIT


def test_tokens_of_one_purpose_are_not_valid_for_the_other() -> None:
    grant = Grant("7", 1000, (1000,), "/data/a", 2_000_000_000)
    with pytest.raises(InvalidToken, match="not valid here"):
        permits.verify(tokens.sign(grant, KEY), KEY, now=1.0)
    with pytest.raises(InvalidToken, match="not valid here"):
        tokens.verify(permits.sign(PERMIT, KEY), KEY, now=1.0)


def test_a_permit_ends() -> None:
    with pytest.raises(InvalidToken, match="expired"):
        permits.verify(permits.sign(PERMIT, KEY), KEY, now=2_000_000_000)


@pytest.mark.parametrize(
    "change",
    [
        {"uid": 0},
        {"gids": ()},
        {"path": "relative"},
        {"mark": "../x"},
        {"mark": ""},
        {"max_bytes": 0},
        {"max_entries": 10**9},
        {"writes": 1},
    ],
)
def test_what_no_server_permits_is_not_signed(change: dict[str, Any]) -> None:
    body = {**asdict(PERMIT), **change}
    with pytest.raises(ValueError, match="token"):
        permits.sign(Permit(**body), KEY)
    with pytest.raises(InvalidToken):
        permits.verify(tokens.seal(body, KEY, permits._PURPOSE), KEY, now=1.0)


def test_a_proof_is_for_one_token_one_connection_and_one_server() -> None:
    known = permits.proof_key("token", KEY)
    proof = permits.proof(known, "nonce", "10.0.0.1")
    assert proof == permits.proof(known, "nonce", "::ffff:10.0.0.1")
    others = {
        permits.proof(permits.proof_key("other", KEY), "nonce", "10.0.0.1"),
        permits.proof(permits.proof_key("token", KEY[::-1]), "nonce", "10.0.0.1"),
        permits.proof(known, "other", "10.0.0.1"),
        permits.proof(known, "nonce", "10.0.0.2"),
        permits.proof(known, "nonce", "fd00::1%eth0"),
    }
    assert len({proof, *others}) == 6


def test_orders_are_read_as_they_were_written() -> None:
    every = [
        Copy(
            "results[0]",
            Place(url="http://a:1", token="t", proof_key="p"),
            Place(folder="/volumes/0", path="a"),
            "m",
            LIMITS,
        ),
        Copy(
            "prepare[0]", Place(folder="/v", is_projected=True), Place(url="http://a:1"), "m", LIMITS, is_private=True
        ),
    ]
    assert list(orders.parse(orders.text(every).encode())) == every


@given(st.one_of(st.binary(max_size=100), st.sampled_from([b"{}", b"[1]", b'[{"name":1}]', b"[" * 10_000])))
def test_other_orders_are_refused(content: bytes) -> None:
    with contextlib.suppress(orders.InvalidOrders):
        assert orders.parse(content) == ()


REPORTS = st.lists(
    st.one_of(
        st.builds(Report, st.text(min_size=1), st.booleans()),
        st.builds(
            Report,
            st.just(""),
            st.just(value=True),
            st.integers(0, 2**62),
            st.integers(0, 2**62),
            st.integers(0, 9),
            st.text(),
        ),
    ),
    max_size=8,
)


@given(REPORTS)
def test_reports_are_read_as_they_were_written(every: list[Report]) -> None:
    found = orders.reports(orders.message(every), len(every))
    assert found is not None
    assert [(bool(one.why), one.is_final, one.files, one.size) for one in found] == [
        (bool(one.why), one.is_final, one.files, one.size) for one in every
    ]
    assert all((one.why + one.example).isprintable() and len(one.why) <= orders.MAX_WHY for one in found)


@pytest.mark.parametrize("content", ["", "Error", "[]", '[["", true]]', "[[1,2]]", '[[-1,0,0,""]]', "[" * 9000])
def test_other_reports_say_nothing(content: str) -> None:
    assert orders.reports(content, 1) is None


def run(tmp_path: Path, *copies: Copy, pauses: tuple[float, ...] = ()) -> tuple[int, tuple[Report, ...]]:
    (tmp_path / "orders").write_text(orders.text(copies))
    code = porter.run(tmp_path / "orders", tmp_path / "said", pauses=pauses, passing=Time(sleep=lambda _: None))
    found = orders.reports((tmp_path / "said").read_text(), len(copies))
    assert found is not None
    return code, found


def test_what_can_be_copied_is_and_the_rest_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    code, (there, missing) = run(tmp_path, copy(tmp_path, "a", "to/b"), copy(tmp_path, "nothing", "c"))
    assert (tmp_path / "to" / "b").read_bytes() == b"content"
    assert (code, there.files, there.size, missing.why, missing.is_final) == (1, 1, 7, "there is no nothing", True)


def test_what_may_come_is_tried_again(tmp_path: Path) -> None:
    slept: list[float] = []
    place = Place(url="http://127.0.0.1:1", token="t")
    wanted = Copy("results[0]", place, Place(folder=str(tmp_path), path="a"), "m", LIMITS)
    (tmp_path / "orders").write_text(orders.text([wanted]))
    assert porter.run(tmp_path / "orders", tmp_path / "said", pauses=(1.0, 2.0), passing=Time(sleep=slept.append)) == 1
    assert slept == [1.0, 2.0]
    (report,) = orders.reports((tmp_path / "said").read_text(), 1) or ()
    assert report.why
    assert not report.is_final


@contextlib.contextmanager
def busy() -> Iterator[int]:
    """A server that has no place for another copy; its port."""

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                _ = connection.recv(protocol.MAX_HEAD)
                connection.sendall(protocol.error(HTTPStatus.TOO_MANY_REQUESTS, "other copies are under way here"))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_a_server_without_a_place_is_waited_for_up_to_the_deadline(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    with busy() as port:
        place = Place(url=f"http://127.0.0.1:{port}", token="t")
        wanted = Copy("results[0]", place, Place(folder=str(tmp_path), path="a"), "m", LIMITS)
        (tmp_path / "orders").write_text(orders.text([wanted]))
        passing = Time(lambda: now, sleep)
        assert porter.run(tmp_path / "orders", tmp_path / "said", pauses=(1.0,), passing=passing) == 1
    assert porter.ITEM_SECONDS - 2 * protocol.RETRY_SECONDS <= now < porter.ITEM_SECONDS
    (report,) = orders.reports((tmp_path / "said").read_text(), 1) or ()
    assert (report.why, report.is_final) == ("other copies are under way here", False)
    assert capfd.readouterr().err == "results[0]: other copies are under way here\n"


def test_files_of_a_config_map_are_reached_as_the_kubelet_lays_them(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    real = mounted / "..2026"
    (real / "deep").mkdir(parents=True)
    (real / "key").write_bytes(b"1")
    (real / "deep" / "other").write_bytes(b"2")
    (mounted / "..data").symlink_to("..2026")
    (mounted / "key").symlink_to("..data/key")
    source = Place(folder=str(mounted), is_projected=True)
    target = Place(folder=str(tmp_path), path="copy")
    code, _ = run(tmp_path, Copy("prepare[0]", source, target, "m", LIMITS, is_private=True))
    assert code == 0
    assert {one.name for one in (tmp_path / "copy").iterdir()} == {"key", "deep"}
    assert (tmp_path / "copy" / "deep" / "other").read_bytes() == b"2"
    code, _ = run(tmp_path, Copy("prepare[0]", replace(source, path="key"), replace(target, path="one"), "m", LIMITS))
    assert (tmp_path / "one").read_bytes() == b"1"


def test_all_of_a_volume_goes_right_into_another(tmp_path: Path) -> None:
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    (tmp_path / "from" / "a").write_bytes(b"1")
    wanted = Copy("p", Place(folder=f"{tmp_path}/from"), Place(folder=f"{tmp_path}/to"), "m", LIMITS)
    assert run(tmp_path, wanted)[0] == 0
    assert [one.name for one in (tmp_path / "to").iterdir()] == ["a"]
