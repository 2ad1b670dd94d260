// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// The arithmetic by which the courts empty a case's pot, as it stands there: rounding down never pays more than there
/// is, and nothing stays behind; and how many seats decide. Divisions by what is not a power of two are beyond the
/// solver: every amount up to a bound is tried.
contract SplitProof {
    uint256 private constant PROVER_BPS = 3_000;
    uint256 private constant PROVER_FEES = 10;
    uint256 private constant FUND_BPS = 2_000;
    uint256 private constant BPS = 10_000;

    /// Panels._paySeats: what each of the seats at distance 0 gets.
    function partOf(uint256 pot, uint256 winners, uint256 fee) private pure returns (uint256 part) {
        part = pot / winners;
        if (part > fee) part = fee;
    }

    /// AuditCourt._payProvers after Fraud: to each prover, to the court fund; burnt by _emptyPot.
    function splitOf(
        uint256 rest,
        uint256 bond,
        uint256 provers,
        uint256 fee
    ) private pure returns (uint256 share, uint256 toFund, uint256 burnt) {
        share = (bond * PROVER_BPS) / BPS / provers;
        if (share > PROVER_FEES * fee) share = PROVER_FEES * fee;
        if (share > rest / provers) share = rest / provers;
        rest -= share * provers;
        toFund = (bond * FUND_BPS) / BPS;
        if (toFund > rest) toFund = rest;
        burnt = rest - toFund;
    }

    function test_seats_are_paid_what_there_is() external pure {
        for (uint256 winners = 1; winners <= 5; ++winners) {
            for (uint256 pot; pot < 256; ++pot) for (uint256 fee = 1; fee < 64; ++fee) paid(pot, winners, fee);
        }
    }

    function paid(uint256 pot, uint256 winners, uint256 fee) private pure {
        uint256 part = partOf(pot, winners, fee);
        assert(part <= fee);
        assert(part * winners <= pot);
        // only the dust of an equal division stays where fees are short
        assert(part == fee || pot - part * winners < winners);
    }

    function test_a_slash_is_split_to_the_wei() external pure {
        for (uint256 provers = 1; provers <= 6; ++provers) {
            for (uint256 bond; bond < 64; ++bond) {
                for (uint256 rest; rest < 96; ++rest)
                    for (uint256 fee = 1; fee < 4; ++fee) split(rest, bond, provers, fee);
            }
        }
    }

    function split(uint256 rest, uint256 bond, uint256 provers, uint256 fee) private pure {
        (uint256 share, uint256 toFund, uint256 burnt) = splitOf(rest, bond, provers, fee);
        assert(share * provers + toFund + burnt == rest);
        assert(share <= 10 * fee);
        assert(share * provers * 10 <= bond * 3);
        assert(toFund * 5 <= bond);
    }

    /// CheckpointCourt.distribute: the pot holds half of each bond, the other half was burnt.
    function sharedOut(
        uint256 pot,
        uint256 provers,
        uint256 fee
    ) private pure returns (uint256 share, uint256 toFund, uint256 burnt) {
        share = (pot * 3) / 5 / provers;
        if (share > PROVER_FEES * fee) share = PROVER_FEES * fee;
        uint256 rest = pot - share * provers;
        toFund = (pot * 2) / 5;
        if (toFund > rest) toFund = rest;
        burnt = rest - toFund;
    }

    /// Up to 21 seats and three challengers or appellants.
    function test_what_false_attesters_lost_is_shared_out_to_the_wei() external pure {
        for (uint256 provers = 1; provers <= 24; ++provers) {
            for (uint256 pot = 1; pot < 512; ++pot) for (uint256 fee = 1; fee < 8; ++fee) shared(pot, provers, fee);
        }
    }

    function shared(uint256 pot, uint256 provers, uint256 fee) private pure {
        (uint256 share, uint256 toFund, uint256 burnt) = sharedOut(pot, provers, fee);
        assert(share * provers + toFund + burnt == pot);
        assert(share <= 10 * fee && share * provers * 5 <= pot * 3);
        assert(toFund == (pot * 2) / 5); // the provers never leave the fund short
        // capped, or short of the provers' part by less than a wei for each
        assert(share == 10 * fee || (share + 1) * provers > (pot * 3) / 5);
    }

    /// Panels._shareOf: the least number of the seats that spoke that is no smaller a part than `needed` of `panel`.
    function shareOf(uint256 needed, uint256 panel, uint256 spoke) private pure returns (uint256) {
        return (needed * spoke + panel - 1) / panel;
    }

    function test_the_seats_that_spoke_need_the_share_of_a_full_panel() external pure {
        for (uint256 panel = 3; panel <= 64; ++panel) {
            for (uint256 needed = panel / 2 + 1; needed <= panel; ++needed) {
                assert(shareOf(needed, panel, panel) == needed);
                for (uint256 spoke; spoke <= panel; ++spoke) decides(needed, panel, spoke);
            }
        }
    }

    function decides(uint256 needed, uint256 panel, uint256 spoke) private pure {
        uint256 share = shareOf(needed, panel, spoke);
        assert(share * panel >= needed * spoke);
        assert(share == 0 || (share - 1) * panel < needed * spoke);
        assert(share <= spoke && share <= needed);
        assert(2 * share > spoke || spoke == 0); // two findings never both have it
    }
}
