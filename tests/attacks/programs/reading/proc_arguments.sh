# Looks for secrets in the arguments of every process.
# evidence: read
# bare: works
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -ao 'canary-[0-9a-f]*'
