"""The shared law and mathematics: what node, verifier and contracts must agree on."""
