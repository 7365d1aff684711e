# cause: processes
import subprocess

started = [subprocess.Popen(["sleep", "60"]) for _ in range(200)]
