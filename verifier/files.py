"""The files of one run of a claim, in a folder of its own; also the names under which an operator is asked for them."""

PAYLOAD = "payload"
TRACE = "trace.json"
END_STATE = "end_state"
