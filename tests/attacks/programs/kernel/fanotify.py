# Watches what others do with their files.
# evidence: descriptor
# bare: kernel

from hostile import hold, syscall

syscall("fanotify_init", 0x200, 0)
hold()
