"""The one error of the kubelet API: a status and a sentence, which kubectl shows."""

from __future__ import annotations

from http import HTTPStatus


class NotServed(Exception):
    """A request is not served.

    Parameters
    ----------
    status
        The status of HTTP.
    why
        One sentence.
    """

    def __init__(self, status: HTTPStatus, why: str) -> None:
        self.status = status
        self.why = why
        super().__init__(why)
