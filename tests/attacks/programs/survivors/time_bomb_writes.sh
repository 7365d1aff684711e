# Ends successfully at once, and writes outside the workspace half a second later.
# evidence: write
# bare: works
(sleep 0.5; echo late > "$ATTACK_OUTSIDE/late") >/dev/null 2>&1 &
exit 0
