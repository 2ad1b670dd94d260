"""One call, value in and value out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from protocol.core.model import (
    audit_court,
    checkpoint_court,
    claims,
    findings,
    jobs,
    money,
    panels,
    registry,
    rounds,
    settlement,
    tickets,
    votes,
)
from protocol.core.model.world import Block, World

_COURT, _CHECKPOINTS = audit_court.RULES, checkpoint_court.RULES

# By contract and function. Each takes the world, the caller, and the function's arguments.
CALLS: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("token", "mint"): lambda w, _, *a: money.mint(w, *a),
    ("token", "approve"): money.approve,
    ("vault", "deposit"): money.deposit,
    ("vault", "withdraw"): money.withdraw_stake,
    ("ledger", "withdraw"): lambda w, _, *a: money.withdraw_credit(w, *a),
    ("registry", "register"): lambda w, caller, *a: registry.register(w, caller, *a[:4], deadline=a[-2]),
    ("registry", "revoke"): registry.revoke,
    ("registry", "cancelSignatures"): registry.cancel_signatures,
    ("registry", "setPayout"): registry.set_payout,
    ("market", "post"): jobs.post,
    ("market", "fund"): jobs.fund,
    ("market", "pause"): jobs.pause,
    ("market", "resume"): jobs.resume,
    ("market", "cancel"): jobs.cancel,
    ("market", "refund"): jobs.refund,
    ("market", "close"): lambda w, _, *a: jobs.close(w, *a),
    ("market", "calibrate"): jobs.calibrate,
    ("market", "allowPosting"): jobs.allow_posting,
    ("tickets", "enroll"): tickets.enroll,
    ("tickets", "exit"): tickets.exit,
    ("tickets", "release"): lambda w, _, *a: tickets.release(w, *a),
    ("rounds", "open"): lambda w, _, *a: rounds.open(w, *a),
    ("rounds", "claim"): claims.claim,
    ("rounds", "commit"): claims.commit,
    ("rounds", "attest"): lambda w, caller, job, number, base, *pair: votes.attest(w, caller, job, number, base, pair),
    ("rounds", "advance"): lambda w, _, *a: votes.advance(w, *a),
    ("rounds", "draw"): lambda w, _, *a: rounds.draw(w, *a),
    ("rounds", "settle"): lambda w, _, *a: settlement.settle(w, *a),
    ("court", "convene"): lambda w, _, *a: audit_court.convene(w, *a),
    ("court", "challenge"): audit_court.challenge,
    ("court", "demandAudit"): audit_court.demand_audit,
    ("court", "commitAudit"): lambda w, *a: panels.commit_audit(w, _COURT, *a),
    ("court", "reveal"): lambda w, *a: findings.reveal(w, _COURT, *a),
    ("court", "demandTrace"): lambda w, *a: findings.demand_trace(w, _COURT, *a),
    ("court", "openTrace"): lambda w, _, *a: findings.open_trace(w, _COURT, *a),
    ("court", "appeal"): lambda w, *a: panels.appeal(w, _COURT, w.site.court, *a),
    ("court", "advance"): lambda w, _, *a: panels.advance(w, _COURT, *a),
    ("checkpoints", "challenge"): checkpoint_court.challenge,
    ("checkpoints", "commitAudit"): lambda w, *a: panels.commit_audit(w, _CHECKPOINTS, *a),
    ("checkpoints", "reveal"): checkpoint_court.reveal,
    ("checkpoints", "distribute"): lambda w, _, *a: checkpoint_court.distribute(w, *a),
    ("checkpoints", "appeal"): lambda w, *a: panels.appeal(w, _CHECKPOINTS, w.site.checkpoints, *a),
    ("checkpoints", "advance"): lambda w, _, *a: panels.advance(w, _CHECKPOINTS, *a),
}


def transact(world: World, block: Block, caller: str, contract: str, function: str, *args: Any) -> tuple[World, Any]:
    """The world after a call, and what the call returns. A Refusal is raised where the contract reverts; `world` stays
    as it was in either case."""
    after = world.at(block)
    result = CALLS[contract, function](after, caller, *args)
    return after, result
