# Leaves a setuid program, which runs as its owner whoever starts it.
# evidence: leave
# bare: works

import os

for folder in (".", os.environ["ATTACK_OUT"], os.environ["ATTACK_OUTSIDE"]):
    name = os.path.join(folder, "setuid")
    try:
        open(name, "wb").write(open("/bin/true", "rb").read())
        os.chmod(name, 0o6755)
    except OSError:
        continue
os.chmod(".", 0o7777)
