"""The program as `cmake --install` lays it out, and projects built against it."""

import json
import os
import pathlib
import shutil
import subprocess

from cli_case import PROGRAM, SOURCE

BUILD = pathlib.Path(PROGRAM).parent if PROGRAM else None


def run(*command, **kwargs):
    """Runs a command of the tool chain; what it printed when it fails."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=240, check=False, **kwargs)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def install(prefix, *components):
    """Copies the components of the build under test below `prefix`."""
    for component in components:
        run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)


def build(project, prefix, folder, *definitions):
    """Configures and builds a copy of tests/ or examples/ `project` with the package at `prefix`."""
    shutil.copytree(SOURCE / project, folder / "source")
    output = folder / "build"
    generator = ("-G", "Ninja") if shutil.which("ninja") else ()
    environment = {name: value for name, value in os.environ.items() if name != "CMAKE_PREFIX_PATH"}
    run("cmake", "-S", folder / "source", "-B", output, *generator, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix}", *definitions, env=environment)
    run("cmake", "--build", output)
    return output


def has_gpu(case):
    """Does the program under test see a CUDA device?"""
    return json.loads(case.spmmbench("list", "devices", "--json").stdout)["devices"] != []
