# cause: disk
import tempfile

held = []
while True:
    held.append(tempfile.TemporaryFile())  # noqa: SIM115 (it stays open)
    held[-1].write(bytes(1 << 20))
    held[-1].flush()
