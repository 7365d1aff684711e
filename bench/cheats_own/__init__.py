"""The cheats that were written beside the tripwires; those of `heldout` were written without sight of them."""
