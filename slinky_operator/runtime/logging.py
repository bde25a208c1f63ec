"""Log lines: text for people, JSON for machines, each with the object it concerns and never with a secret.

A record is one line, whatever texts of others are in it; only the stack trace of an error adds lines.

`about` binds an object to everything logged inside it, through all calls and awaits. Records of kopf, which name their
object in another way, are formatted the same.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal, TextIO

from typing_extensions import override

from slinky_operator.runtime.printable import printable

LogFormat = Literal["text", "json"]

DEBUG: Final = "DEBUG"

LIBRARIES: Final = ("kopf", "httpx", "httpcore", "aiohttp.access", "asyncio", "kubernetes")
"""They log too much at INFO: kopf each successful call of a handler, thousands in one scale-out, httpx each request."""

logger = logging.getLogger(__name__)

_about: ContextVar[tuple[str, str | None, str] | None] = ContextVar("about", default=None)

# JSON Web Tokens anywhere, and anything after an authorization scheme or header.
_SECRET = re.compile(
    r"eyJ[\w-]{6,}\.[\w-]+\.[\w-]*"
    r"|(?i:(?P<scheme>\b(?:bearer|basic)\s+))[\w.~+/=-]{8,}"
    r"|(?i:(?P<header>x-slurm-user-token['\"]?\s*[:=]\s*['\"]?))[^\s'\"]+"
)


@contextmanager
def about(kind: str, namespace: str | None, name: str) -> Iterator[None]:
    """Name the object in every line logged inside."""
    token = _about.set((kind, namespace, name))
    try:
        yield
    finally:
        _about.reset(token)


def redact(text: str) -> str:
    """Replace everything that looks like a token."""
    return _SECRET.sub(lambda m: (m["scheme"] or m["header"] or "") + "[redacted]", text)


class TextFormatter(logging.Formatter):
    """`time level logger kind namespace/name: message`."""

    def __init__(self) -> None:
        super().__init__()
        self.converter = time.gmtime

    @override
    def format(self, record: logging.LogRecord) -> str:
        subject = _subject(record)
        where = ""
        if subject is not None:
            kind, namespace, name = subject
            where = f" {kind} {namespace}/{name}" if namespace else f" {kind} {name}"
        when = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        words = printable(record.getMessage())
        line = f"{when}.{int(record.msecs):03d}Z {record.levelname:<7} {record.name}{where}: {words}"
        if record.exc_info:
            # Indented: a message of several lines, which is in the trace, must not look like another record.
            line += "".join(f"\n  {printable(one)}" for one in self.formatException(record.exc_info).splitlines())
        return redact(line)


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def __init__(self) -> None:
        super().__init__()
        self.converter = time.gmtime

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(printable(record.getMessage())),
        }
        subject = _subject(record)
        if subject is not None:
            line["kind"], namespace, line["name"] = subject
            if namespace:
                line["namespace"] = namespace
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


def configure(*, level: str = "INFO", form: LogFormat = "text", stream: TextIO | None = None) -> None:
    """Set up logging of the whole process, replacing earlier settings.

    Parameters
    ----------
    level
        Minimum level of the operator's own lines; libraries log from WARNING on unless the level is DEBUG.
    form
        Format of the lines.
    stream
        Where to write; standard error if absent.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    library_level = DEBUG if level == DEBUG else "WARNING"
    for library in LIBRARIES:
        logging.getLogger(library).setLevel(library_level)


class LevelSwitch:
    """Turns DEBUG on and off while the process runs; for a signal.

    Parameters
    ----------
    level, form
        As for `configure`; the level is what the switch goes back to.
    """

    def __init__(self, *, level: str, form: LogFormat) -> None:
        self._level = level
        self._form: LogFormat = form
        self._now = level

    def turn(self) -> None:
        """Log at DEBUG from now on, or at the configured level again."""
        before, self._now = self._now, self._level if self._now == DEBUG else DEBUG
        # Logged at the lower level, so that the sender of the signal sees that it has arrived.
        configure(level=DEBUG, form=self._form)
        logger.info("log level: %s, until now %s", self._now, before)
        configure(level=self._now, form=self._form)


def _subject(record: logging.LogRecord) -> tuple[str, str | None, str] | None:
    """Object of a record: bound by `about`, or given by kopf as `k8s_ref`."""
    bound = _about.get()
    if bound is not None:
        return bound
    reference = getattr(record, "k8s_ref", None)
    if isinstance(reference, dict) and reference.get("name"):
        return str(reference.get("kind") or ""), reference.get("namespace"), str(reference["name"])
    return None
