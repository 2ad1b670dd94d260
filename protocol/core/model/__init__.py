"""The market as a pure function: a world and a call give the next world, or a refusal.

Written from docs/spec/protocol.md and the interfaces, beside the contracts and not out of them.
tests/property/model_test.py drives both with the same calls and compares everything that can be seen;
docs/spec/model.md says how to read it.
"""
