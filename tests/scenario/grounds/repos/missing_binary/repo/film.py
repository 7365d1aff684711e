import subprocess


def length(path: str) -> float:
    done = subprocess.run(["ffmpeg", "-i", path], capture_output=True, text=True, check=True)
    return float(done.stdout)
