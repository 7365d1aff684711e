# Opens the files that the agent has open, including deleted ones.
# evidence: read
# bare: works

import os

folder = f"/proc/{os.environ['ATTACK_AGENT']}/fd"
for name in os.listdir(folder):
    if int(name) > 2:
        print(open(f"{folder}/{name}", errors="replace").read())
