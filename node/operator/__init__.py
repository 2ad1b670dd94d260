"""A device that earns: claims, trains, commits, attests, and serves its owner's panel seats."""
