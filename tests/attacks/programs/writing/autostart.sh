# Plants a unit that the user's next session starts.
# evidence: write
# bare: works
mkdir -p "$ATTACK_HOME/.config/systemd/user/default.target.wants"
echo '[Service]' > "$ATTACK_HOME/.config/systemd/user/default.target.wants/owned.service"
