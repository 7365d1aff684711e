# Prints 100 MB on standard error.
# evidence: output
# bare: works
yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | head -c 100000000 >&2
