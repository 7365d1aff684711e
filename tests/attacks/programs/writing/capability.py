# Leaves a program with file capabilities behind.
# evidence: leave
# bare: refused

import os

open("capable", "wb").write(open("/bin/true", "rb").read())
os.setxattr("capable", "security.capability", bytes.fromhex("0100000200000020000000000000000000000000"))
