"""The ctypes structs of the package are the structs of the headers of the C interface."""

import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from python_case import SKIPPED, SOURCE, main, need

need("numpy", "scipy")
COMPILER = shutil.which("cc") or shutil.which("gcc")
if COMPILER is None:
    print("no C compiler")
    sys.exit(SKIPPED)

import spmmbench  # noqa: E402
from spmmbench import _abi  # noqa: E402

HEADERS = ("plugin", "measure", "attention", "swiglu")
STRUCTS = {
    "spmmbench_csr": _abi.Csr,
    "spmmbench_dense": _abi.Dense,
    "spmmbench_shape": _abi.Shape,
    "spmmbench_problem": _abi.Problem,
    "spmmbench_stages": _abi.Stages,
    "spmmbench_report": _abi.Report,
    "spmmbench_option": _abi.Option,
    "spmmbench_variant": _abi.Variant,
    "spmmbench_kernel": _abi.Kernel,
    "spmmbench_library": _abi.Library,
    "spmmbench_case": _abi.Case,
    "spmmbench_product": _abi.Product,
    "spmmbench_measure": _abi.Measure,
    "spmmbench_heads": _abi.Heads,
    "spmmbench_attention_call": _abi.AttentionCall,
    "spmmbench_attention": _abi.Attention,
    "spmmbench_swiglu_call": _abi.SwigluCall,
    "spmmbench_swiglu": _abi.Swiglu,
}
VALUES = (
    "OK UNSUPPORTED INVALID OUT_OF_MEMORY DEVICE_LOST FAILED HOST CUDA F32 F16 BF16 I32 I64 "
    "ROW_MAJOR COL_MAJOR SUMS_FP32 SUMS_TENSOR_CORE SUMS_FP16 BINARY_A SQUARE_ONLY ADDS_TO_C "
    "IGNORES_STREAM KEEPS_A ROW_IDS VENDOR PACKED_ROWS TUNES TRANSPOSED UNCHECKED ABI_VERSION MEASURE_VERSION "
    "ATTENTION_VERSION SWIGLU_VERSION"
).split()


def from_compiler():
    """{"struct" or "struct.field": (size or offset), "VALUE": value} as a C compiler sees them."""
    lines = ["#include <stdio.h>", *map('#include "spmmbench/{}.h"'.format, HEADERS), "int main(void) {"]
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for field, *_ in struct._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof(struct {name}, {field}));')
    for value in VALUES:
        lines.append(f'printf("{value} %d\\n", (int)SPMMBENCH_{value});')
    for name, value in _abi.PRECISIONS.items():
        lines.append(f'printf("{name} %d\\n", SPMMBENCH_{name.upper()}_IN);')
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "layout.c"
        source.write_text("\n".join(lines))
        program = source.with_suffix("")
        asked = [COMPILER, "-std=c11", "-I", SOURCE / "include", source, "-o", program]
        subprocess.run(asked, check=True)
        told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {name: int(value) for name, value in (line.split() for line in told.splitlines())}


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compiled = from_compiler()

    def test_structs_have_the_compilers_sizes_and_offsets(self):
        for name, struct in STRUCTS.items():
            self.assertEqual(ctypes.sizeof(struct), self.compiled[name], name)
            for field, *_ in struct._fields_:
                expected = self.compiled[f"{name}.{field}"]
                self.assertEqual(getattr(struct, field).offset, expected, f"{name}.{field}")

    def test_values_are_the_headers(self):
        for name in VALUES:
            self.assertEqual(getattr(_abi, name), self.compiled[name], name)
        for name, value in _abi.PRECISIONS.items():
            self.assertEqual(value, self.compiled[name], name)

    def test_the_package_has_the_version_of_the_program(self):
        wanted = re.search(r"VERSION (\S+) LANGUAGES", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertEqual(spmmbench.__version__, wanted)
        self.assertIn(f'version = "{wanted}"', (SOURCE / "python/pyproject.toml").read_text())
        self.assertIn(f"version: {wanted}\n", (SOURCE / "CITATION.cff").read_text())

    def test_every_struct_of_the_header_is_there(self):
        headers = [(SOURCE / f"include/spmmbench/{x}.h").read_text() for x in HEADERS]
        named = set(re.findall(r"^(?:typedef )?struct (\w+) \{", "".join(headers), re.M))
        self.assertEqual(named, set(STRUCTS))


if __name__ == "__main__":
    main()
