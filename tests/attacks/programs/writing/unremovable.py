# Leaves deeply nested folders that even their owner cannot enter.
# evidence: leave
# bare: untried

import os

os.makedirs("a/" * 200)
os.makedirs("closed/inner")
os.chmod("closed/inner", 0)
os.chmod("closed", 0)
