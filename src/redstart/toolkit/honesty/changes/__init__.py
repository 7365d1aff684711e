"""The verdict on a change that edits the code and its tests together."""
