#!/usr/bin/env python3
"""Registers, spills and shared memory of every kernel, compared with results/resources.json.

A kernel that suddenly needs more registers, spills or takes more shared memory runs slower, and the
compiler says so without a GPU: a build keeps what ptxas reports of every file in kernels/.

  scripts/kernel_resources.py build/release            compare; exit 1 on a difference
  scripts/kernel_resources.py build/release --record   write the recorded values anew

Numbers depend on the compiler: with another CUDA release than the recorded one nothing is compared
(exit 77).
"""

import argparse
import functools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from command_line import Parser, numbered

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
ARCHITECTURE = "90a"
SKIPPED = 77
ENTRY = re.compile(rf"Compiling entry function '(\w+)' for '(sm_{ARCHITECTURE})?")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")

# Values are compared in these steps, rounded up. A multiprocessor gives a thread registers in steps of 8.
# In a file with other kernels, shared memory ends at a multiple of 16 bytes. ptxas lays out the stack by
# names that depend on the folder of the build: 32 or 48 bytes for one source. What it spills is compared exactly.
STEPS = {"registers": 8, "shared_bytes": 16, "stack_bytes": 64}


def parse_ptxas(text):
    """{mangled kernel name: resources} on the recorded architecture, from what `ptxas -v` prints."""
    kernels = {}
    current = None
    for line in text.splitlines():
        if match := ENTRY.search(line):
            current = kernels.setdefault(match[1], {}) if match[2] else None
        elif current is not None and (match := STACK.search(line)):
            stack, stores, loads = map(int, match.groups())
            current.update(stack_bytes=stack, spill_bytes=stores + loads)
        elif current is not None and (match := USED.search(line)):
            shared = SHARED.search(line)
            current.update(registers=int(match[1]), shared_bytes=int(shared[1]) if shared else 0)
            current = None  # what follows belongs to the next entry
    return kernels


def short_names(mangled):
    """Demangled names without namespaces of the project and without parameter lists."""
    output = subprocess.run(["c++filt"], input="\n".join(mangled), text=True, check=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    return {name: shorten(long) for name, long in zip(mangled, output)}


def shorten(demangled):
    name = demangled.replace("(anonymous namespace)::", "").replace("spmmbench::", "")
    name = name.removeprefix("void ")
    depth = 0
    for at, char in enumerate(name):  # the parameter list is the first '(' outside of <>
        depth += (char == "<") - (char == ">")
        if char == "(" and depth == 0:
            return name[:at]
    return name


def sources_of(entry):
    """The files that an entry of compile_commands.json compiles: one, or those that a joined one includes."""
    file = Path(entry["file"])
    if not file.name.startswith("unity_"):
        return [file]
    return [Path(name) for name in re.findall(r'#include "(.+)"', file.read_text())]


@functools.cache
def text_of(file):
    return file.read_text()


@functools.cache
def parts_of(file):
    """A source file and the headers of kernels that it includes, also by way of others."""
    parts, folder = [file], file.parent.parent
    for part in parts:  # which grows
        headers = (folder / name for name in re.findall(r'#include "(\S+/\S+\.cuh)"', text_of(part)))
        parts += [header for header in headers if header.exists() and header not in parts]
    return parts


def definition_of(kernel):
    name = kernel.split("<")[0].split("::")[-1]
    return re.compile(rf"__global__[^;{{]*?\b{name}\(")


def recorded_name(kernel, file):
    """Kernels that kernels/NAME/NAME.cu itself defines are recorded without its namespace."""
    itself = file.stem == file.parent.name and definition_of(kernel).search(text_of(file))
    return kernel.removeprefix(f"{file.stem}::") if itself else kernel


def defining(kernel, sources):
    """Which of `sources` defines a kernel: in its own folder, else in a header that it includes."""
    space = kernel.split("<")[0].split("::")[:-1]
    definition = definition_of(kernel)

    def defines(part):
        text = text_of(part)
        return definition.search(text) and (not space or f"namespace spmmbench::{space[0]} {{" in text)

    parts = [(file, part) for file in sources for part in parts_of(file) if defines(part)]
    if not parts:
        sys.exit(f"{kernel}: defined in none of {', '.join(map(str, sources))}")
    return next((file for file, part in parts if part.parent == file.parent), parts[0][0])


def measure(entry):
    """{file: {short name: resources}} of an entry, from what scripts/keep_ptxas.sh kept when it was compiled."""
    words = shlex.split(entry["command"])
    kept = Path(entry["directory"], words[words.index("-o") + 1] + ".ptxas")
    if not kept.exists():
        sys.exit(f"{kept}: not found; build first")
    kernels = parse_ptxas(kept.read_text())
    names = short_names(list(kernels))
    sources = sources_of(entry)
    files = {}
    for mangled, resources in sorted(kernels.items()):
        if names[mangled].startswith("cub::"):  # NVIDIA's
            continue
        file = sources[0] if len(sources) == 1 else defining(names[mangled], sources)
        if file.is_relative_to(KERNELS):  # some of src/gpu are joined with them
            files.setdefault(file, {})[recorded_name(names[mangled], file)] = resources
    return files


def nvcc_of(entry):
    """The CUDA compiler of an entry of compile_commands.json; None for another compiler's."""
    return next((word for word in shlex.split(entry["command"]) if Path(word).name == "nvcc"), None)


def cuda_release(entry):
    text = subprocess.run([nvcc_of(entry), "--version"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    return re.search(r"release ([\d.]+)", text)[1]


def compare(recorded, current):
    """A line per recorded kernel that changed, and one per kernel that is not recorded yet."""
    lines, unrecorded = [], []
    for file in sorted(recorded.keys() | current.keys()):
        old, new = recorded.get(file, {}), current.get(file, {})
        for kernel in sorted(old.keys() | new.keys()):
            if kernel not in new:
                lines.append(f"{file}: {kernel}: recorded, but no longer there")
            elif kernel not in old:
                unrecorded.append(f"{file}: {kernel}: not recorded: {new[kernel]}")
            else:
                for key in sorted(old[kernel].keys() | new[kernel].keys()):
                    before, after = old[kernel].get(key, 0), new[kernel].get(key, 0)
                    step = STEPS.get(key, 1)
                    if -(-before // step) != -(-after // step):
                        lines.append(f"{file}: {kernel}: {key} {before} -> {after}")
    return lines, unrecorded


def to_json(release, files):
    """One line per kernel, so that a change reads well as a diff."""
    blocks = []
    for file, kernels in files.items():
        rows = [f"      {json.dumps(name)}: {json.dumps(kernels[name])}" for name in sorted(kernels)]
        blocks.append(f"    {json.dumps(file)}: {{\n" + ",\n".join(rows) + "\n    }")
    return (f'{{\n  "cuda_release": {json.dumps(release)},\n  "architecture": "{ARCHITECTURE}",\n'
            '  "kernels": {\n' + ",\n".join(blocks) + "\n  }\n}\n")


def main():
    root = Path(__file__).resolve().parent.parent
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="a configured build folder with CUDA")
    parser.add_argument("--record", action="store_true", help="write the recorded values anew")
    parser.add_argument("--file", type=Path, default=root / "results" / "resources.json",
                        help="the recorded values (default: results/resources.json)")
    options = parser.parse_args()

    database = options.build / "compile_commands.json"
    if not database.exists():
        sys.exit(f"{database}: not found; configure the build first")
    entries = [entry for entry in json.loads(database.read_text())
               if nvcc_of(entry) and any(file.is_relative_to(KERNELS) for file in sources_of(entry))]
    if not entries:
        print(f"{options.build}: built without CUDA, nothing to compare")
        return SKIPPED
    release = cuda_release(entries[0])
    recorded = json.loads(options.file.read_text()) if options.file.exists() else None
    if not options.record:
        if recorded is None:
            sys.exit(f"{options.file}: not found; write it with --record")
        if recorded["cuda_release"] != release:
            print(f"recorded with CUDA {recorded['cuda_release']}, this is {release}: not compared")
            return SKIPPED

    current = {file.relative_to(root).as_posix(): kernels
               for entry in entries for file, kernels in measure(entry).items()}
    current = dict(sorted(current.items()))
    if options.record:
        options.file.write_text(to_json(release, current))
        print(f"{options.file}: {numbered(sum(map(len, current.values())), 'kernel')} recorded")
        return 0
    differences, unrecorded = compare(recorded["kernels"], current)
    for line in unrecorded + differences:
        print(line)
    if differences:
        print(f"{numbered(len(differences), 'difference')}; if meant, record: "
              f"scripts/kernel_resources.py {options.build} --record")
        return 1
    print(f"{numbered(sum(map(len, current.values())), 'kernel')} as recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
