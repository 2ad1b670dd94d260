"""Checks any claim: sits on panels, challenges, re-executes offline. Never imports the node."""
