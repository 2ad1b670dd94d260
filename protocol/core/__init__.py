"""Pure values and rules. No clock, no I/O, no tensors; bound to the contracts by tests/vectors."""
