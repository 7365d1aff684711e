# Plants a systemd unit that starts with the user's next session.
# evidence: write
# bare: works
mkdir -p "$ATTACK_HOME/.config/systemd/user/default.target.wants"
echo '[Service]' > "$ATTACK_HOME/.config/systemd/user/default.target.wants/owned.service"
