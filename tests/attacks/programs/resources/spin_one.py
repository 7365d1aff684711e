# Computes for ever.
# evidence: time
# bare: works

while True:
    pass
