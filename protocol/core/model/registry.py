"""Which hot key works for which owner, at what and until when. What is said to be signed is: signatures are checked
elsewhere. Endpoints and machines are not remembered.
"""

from __future__ import annotations

from dataclasses import replace

from protocol.core.model.records import NOBODY, Operator
from protocol.core.model.refusals import (
    BadScopes,
    DelegationExpired,
    NotAnOperator,
    NotTheOwner,
    OperatorTaken,
    OutOfScope,
    Revoked,
    SignatureExpired,
    ZeroPayout,
)
from protocol.core.model.world import World
from protocol.core.operator import Scope


def register(w: World, caller: str, operator: str, payout: str, scopes: int, expiry: int, *, deadline: int) -> None:
    """Name an operator that consented to the caller, or name anew what it may do; ends a revocation."""
    if payout == NOBODY:
        raise ZeroPayout
    if scopes == 0 or scopes & ~int(Scope.ALL):
        raise BadScopes(scopes, Scope.ALL)
    if expiry < w.now:
        raise DelegationExpired(operator, expiry, w.now)
    if deadline < w.now:
        raise SignatureExpired(deadline, w.now)
    owner = owner_of(w, operator)
    if owner not in (NOBODY, caller):
        raise OperatorTaken(operator, owner)
    _use_nonce(w, operator)
    w.operators[operator] = Operator(caller, Scope(scopes), expiry, revoked=False, payout=payout)


def revoke(w: World, caller: str, operator: str) -> None:
    """Start nothing more with this key; what is open stays open. Its owner, or the operator itself."""
    entry = w.operators.get(operator)
    if entry is None:
        raise NotAnOperator(operator)
    if caller not in (operator, entry.owner):
        raise NotTheOwner(caller, operator)
    _use_nonce(w, caller)
    w.operators[operator] = replace(entry, revoked=True)


def cancel_signatures(w: World, caller: str) -> None:
    """Let nothing count that the caller signed and that was not used. Anyone, for itself."""
    _use_nonce(w, caller)


def set_payout(w: World, caller: str, operator: str, payout: str) -> None:
    """Who is credited from now on. Owner only."""
    entry = w.operators.get(operator)
    if entry is None or entry.owner != caller:
        raise NotTheOwner(caller, operator)
    if payout == NOBODY:
        raise ZeroPayout
    w.operators[operator] = replace(entry, payout=payout)


def owner_for(w: World, operator: str, scope: Scope) -> str:
    """The owner of a key that may start something of this kind now."""
    entry = w.operators.get(operator)
    if entry is None:
        raise NotAnOperator(operator)
    if entry.revoked:
        raise Revoked(operator)
    if w.now > entry.expiry:
        raise DelegationExpired(operator, entry.expiry, w.now)
    if scope not in entry.scopes:
        raise OutOfScope(operator, entry.scopes, scope)
    return entry.owner


def owner_of(w: World, operator: str) -> str:
    """The owner of a key, whatever it may do."""
    entry = w.operators.get(operator)
    return entry.owner if entry else NOBODY


def payout_of(w: World, operator: str) -> str:
    """Whom to credit for a key's work."""
    entry = w.operators.get(operator)
    return entry.payout if entry else NOBODY


def _use_nonce(w: World, account: str) -> None:
    w.nonces[account] = w.nonces.get(account, 0) + 1
