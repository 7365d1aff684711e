# Changes a file of the real repo.
# evidence: write
# bare: works
echo changed >> "$ATTACK_REPO/shop.py"
