"""Starts the program: python -m qtype_cli is the command qtype of this environment."""
import os
import subprocess
import sys
import sysconfig


def find():
    """Returns the path of the program, which pip installs with the scripts."""
    name = "qtype.exe" if os.name == "nt" else "qtype"
    folders = [sysconfig.get_path("scripts"), os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")]
    if hasattr(sysconfig, "get_preferred_scheme"):  # from Python 3.10 on
        folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    sys.exit("the program qtype is missing: install the package qtype-cli again")


if os.name == "nt":
    sys.exit(subprocess.run([find(), *sys.argv[1:]]).returncode)
path = find()
os.execv(path, [path, *sys.argv[1:]])
