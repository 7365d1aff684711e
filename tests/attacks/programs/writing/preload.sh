# Makes every program of the host load a library.
# evidence: system
# bare: refused
echo "/nonexistent/$ATTACK_TOKEN" > "/etc/ld.so.preload.$ATTACK_TOKEN"
echo x > "/usr/lib/redstart-attack-$ATTACK_TOKEN"
