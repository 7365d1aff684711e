# Makes the one `reboot` call that changes almost nothing.
# evidence: word
# bare: refused

from hostile import reached, syscall

syscall("reboot", 0xFEE1DEAD, 672274793, 0, 0)
reached()
