"""Files of the shop."""

import ast
import os
import pickle
import shlex
import subprocess
import tarfile


def pack(name):
    os.system("tar czf backup.tgz " + name)



def restore(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def unpack(path, folder):
    with tarfile.open(path) as archive:
        archive.extractall(folder)



def literal(text):
    return ast.literal_eval(text)


def listing(folder):
    return subprocess.run(["ls", folder], capture_output=True)


def quoted(name):
    return subprocess.run("du -sh " + shlex.quote(name), shell=True, capture_output=True)


def clear():
    os.system("clear")


def copied(value):
    return pickle.loads(pickle.dumps(value))


def unpack_safely(path, folder):
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
