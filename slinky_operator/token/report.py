"""Status and conditions of a Token. Pure. They never contain the token."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason, TokenCondition, find, merge
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.token import Token, TokenStatus
from slinky_operator.reconcile.text import cut, stamp
from slinky_operator.reconcile.writes.parts import condition
from slinky_operator.token.plan import Plan, Problem

LONGEST: Final = 120
"""Maximum characters of the status text."""


def status(token: Token, plan: Plan, now: datetime) -> TokenStatus:
    """The status after a pass."""
    stored, claims, problem = token.status, plan.claims, plan.problem
    issued, expires = (claims.issued, claims.expires) if claims is not None else (None, None)
    if plan.keeps_token:
        issued, expires = stored.issued_at, stored.expires_at
    return TokenStatus(
        summary=cut(problem.message, LONGEST) if problem is not None else "",
        username=token.spec.username,
        issued_at=issued,
        expires_at=expires,
        secret_name=token.secret_name if expires is not None else None,
        observed_generation=token.metadata.generation,
        conditions=merge(stored.conditions, _conditions(token, plan), now),
    )


def invalid(stored: TokenStatus, text: str, now: datetime) -> TokenStatus:
    """The status of a Token that cannot be parsed."""
    wanted = _problem(Problem(Reason.INVALID_SPEC, text))
    return stored.model_copy(
        update={"conditions": merge(stored.conditions, wanted, now), "summary": cut(text, LONGEST)}
    )


def news(stored: TokenStatus, problem: Problem | None) -> Problem | None:
    """A problem that the status does not show yet: it becomes an Event."""
    if problem is None:
        return None
    ready = find(stored.conditions, TokenCondition.READY)
    same = ready is not None and (ready.reason, ready.message) == (str(problem.reason), problem.message)
    return None if same else problem


def _conditions(token: Token, plan: Plan) -> list[Condition]:
    if plan.problem is not None:
        return _problem(plan.problem)
    assert plan.claims is not None  # noqa: S101 - a plan without a problem has a token
    renewed = "renewed before" if token.spec.refresh else "not renewed"
    told = f"token of {plan.claims.username} until {stamp(plan.claims.expires)}, {renewed}"
    return [
        condition(TokenCondition.READY, holds=True, message=told),
        condition(TokenCondition.DEGRADED, holds=False),
    ]


def _problem(problem: Problem) -> list[Condition]:
    reason, message = problem.reason, problem.message
    return [
        condition(TokenCondition.READY, reason, message, holds=False),
        condition(TokenCondition.DEGRADED, reason, message, holds=True),
    ]
