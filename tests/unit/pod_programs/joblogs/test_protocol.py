"""Requests as they come from the network."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.nodeset.pod_spec.job_logs import OUTPUT_VOLUME
from slinky_operator.pod_programs.joblogs.protocol import (
    END_OF_HEAD,
    MAX_LINE,
    MAX_WAIT,
    BadRequest,
    Request,
    error,
    parse,
    volumes,
)
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.volume_room import JOB_OUTPUT


def test_a_request_is_read() -> None:
    head = b"GET /output?offset=12&wait=2.5 HTTP/1.1\r\nHost: x\r\nauthorization: bearer a.b"
    assert parse(head) == Request("a.b", 12, 2.5)


def test_a_question_about_volumes_needs_no_token() -> None:
    assert parse(b"GET /volumes HTTP/1.1\r\nHost: x") == Request("", is_about_volumes=True)
    body = volumes({"job-output": {"size": 1}}).partition(END_OF_HEAD)[2]
    assert json.loads(body) == {"volumes": {"job-output": {"size": 1}}}


def test_the_volume_has_one_name_everywhere() -> None:
    assert Path(naming.JOB_OUTPUT_FOLDER).name == JOB_OUTPUT == OUTPUT_VOLUME


def test_nobody_waits_for_ever() -> None:
    assert parse(b"GET /output?wait=inf HTTP/1.1\r\nAuthorization: Bearer x").wait == MAX_WAIT


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET",
        b"POST /output HTTP/1.1\r\nAuthorization: Bearer x",
        b"GET /etc/passwd HTTP/1.1\r\nAuthorization: Bearer x",
        b"GET /output?offset=-1 HTTP/1.1\r\nAuthorization: Bearer x",
        b"GET /output?offset=99999999999999999999 HTTP/1.1\r\nAuthorization: Bearer x",
        b"GET /output?wait=nan HTTP/1.1\r\nAuthorization: Bearer x",
        b"POST /volumes HTTP/1.1",
        b"GET /output HTTP/1.1",
        b"GET /output HTTP/1.1\r\nAuthorization: Basic x",
    ],
)
def test_what_is_no_such_request_is_refused(head: bytes) -> None:
    with pytest.raises(BadRequest):
        parse(head)


@given(st.binary(max_size=300).filter(lambda head: b"bearer" not in head.lower()))
def test_no_bytes_are_more_than_refused(head: bytes) -> None:
    # Without a token none can be a request.
    with pytest.raises(BadRequest):
        parse(b"GET /output?" + head)


def test_an_error_is_one_line_with_a_limit() -> None:
    body = error(HTTPStatus.FORBIDDEN, "a\nb" + "x" * 1000).partition(b"\r\n\r\n")[2]
    assert body.startswith(b"a b")
    assert body.count(b"\n") == 1
    assert len(body) == MAX_LINE + 1
