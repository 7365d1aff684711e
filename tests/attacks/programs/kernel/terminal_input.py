# Types into the user's terminal.
# evidence: terminal
# bare: kernel

import fcntl
import os
import termios

terminal = os.open("/dev/tty", os.O_RDWR)
for letter in "TYPED":
    fcntl.ioctl(terminal, termios.TIOCSTI, letter.encode())
