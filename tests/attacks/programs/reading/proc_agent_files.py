# Opens what the agent has open, also where it has no name any more.
# evidence: read
# bare: works

import os

folder = f"/proc/{os.environ['ATTACK_AGENT']}/fd"
for name in os.listdir(folder):
    if int(name) > 2:
        print(open(f"{folder}/{name}", errors="replace").read())
