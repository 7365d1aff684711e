# Computes forever.
# evidence: time
# bare: works

while True:
    pass
