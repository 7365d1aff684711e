# Types into the terminal behind the standard streams.
# evidence: terminal
# bare: works

import fcntl
import os
import termios

for stream in (0, 1, 2, 3, 4, 5):
    try:
        for letter in "TYPED":
            fcntl.ioctl(stream, termios.TIOCSTI, letter.encode())
    except OSError:
        continue
with open(os.ctermid(), "w") as terminal:
    terminal.write("TYPED")
