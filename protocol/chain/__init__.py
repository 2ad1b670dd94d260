"""The one door to web3 and eth-account."""

import sys

import eth_account  # noqa: F401  (see below)

# A library under eth-account raises the recursion limit to 100,000. At that depth hostile nesting, in JSON that a peer
# sent, overflows the C stack and ends the process instead of raising RecursionError.
sys.setrecursionlimit(1000)
