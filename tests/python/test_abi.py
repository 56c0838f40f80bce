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
    "OK UNSUPPORTED INVALID OUT_OF_MEMORY DEVICE_LOST FAILED HOST CUDA F32 F16 BF16 F64 I32 I64 "
    "ROW_MAJOR COL_MAJOR SUMS_FP32 SUMS_TENSOR_CORE SUMS_FP16 BINARY_A SQUARE_ONLY ADDS_TO_C "
    "IGNORES_STREAM KEEPS_A ROW_IDS VENDOR PACKED_ROWS TUNES TRANSPOSED UNCHECKED CHECKED_LATE ABI_VERSION "
    "MEASURE_VERSION ATTENTION_VERSION SWIGLU_VERSION"
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

    def test_packed_bytes_are_those_of_the_structs(self):
        packers = {_abi.Csr: _abi.pack_csr, _abi.Dense: _abi.pack_dense, _abi.Problem: _abi.pack_problem}
        for kind, pack in packers.items():
            (size, _), *fields = kind._fields_
            packed = pack(*range(1, len(fields) + 1))
            self.assertEqual(len(packed), ctypes.sizeof(kind))
            made = kind.from_buffer_copy(packed)
            self.assertEqual(getattr(made, size), ctypes.sizeof(kind))
            for number, (name, of) in enumerate(fields, 1):
                value = getattr(made, name)
                plain = isinstance(value, (int, float))
                self.assertEqual(value if plain else ctypes.cast(value, ctypes.c_void_p).value, number, name)

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


class Refusals(unittest.TestCase):
    """Of attention.h and swiglu.h: before anything is launched, so that addresses may be made up."""

    def refused(self, words, call, check, struct, **given):
        with self.subTest(words), self.assertRaisesRegex(spmmbench.Error, words) as caught:
            size = given.pop("size", ctypes.sizeof(struct))
            asked = struct(**given)
            asked.size = size
            check(call(asked, None))
        self.assertNotIn("\n", str(caught.exception))

    def test_attention_that_does_not_fit_is_told_in_one_line(self):
        library = spmmbench.load()
        heads = _abi.Heads(data=4096, token=512, head=128)
        good = dict(type=_abi.F16, head_size=128, heads=4, key_heads=2, tokens=256, scale=1, q=heads, k=heads, v=heads)
        good |= dict(out=heads, block=64, counts=4096, columns=4096, pitch=4)
        for words, change in (
            ("takes fp16 and bf16", dict(type=_abi.F32)),
            ("heads of 64; 128 is taken", dict(head_size=64)),
            ("3 heads of queries and 2 of keys", dict(heads=3)),
            ("blocks of 32 tokens; 64 or 128", dict(block=32)),
            ("200 tokens are no multiple of blocks of 64", dict(tokens=200)),
            ("counts and columns", dict(columns=None)),
            ("a number above 0", dict(scale=0)),
            ("v: address and distances", dict(v=_abi.Heads(data=4098, token=512, head=128))),
            (r"spmmbench_attention_call.size is 8", dict(size=8)),
        ):
            self.refused(
                words, library.attention.attend, library.check_attention, _abi.AttentionCall, **{**good, **change}
            )

    def test_swiglu_that_does_not_fit_is_told_in_one_line(self):
        library = spmmbench.load()
        good = dict(type=_abi.F16, rows=256, columns=128, tokens=8, x=4096, x_distance=128, y=4096, y_distance=256)
        good |= dict(tiles=4096, tile_count=2, pairs=4096, steps=4096)
        for words, change in (
            ("takes fp16 and bf16", dict(type=_abi.F32)),
            ("gate and up of 192 x 128; rows are a multiple of 128", dict(rows=192)),
            ("gate and up of 256 x 96; .* and columns of 64", dict(columns=96)),
            ("0 tokens of 256 rows", dict(tokens=0)),
            ("more than can be counted", dict(tokens=2**40)),
            ("0 tiles; from 1", dict(tile_count=0)),
            ("x: expected an address", dict(x=4098)),
            ("x: expected an address", dict(x_distance=64)),
            ("y: expected an address", dict(y_distance=257)),
            ("steps: expected an address", dict(steps=None)),
            (r"spmmbench_swiglu_call.size is 8", dict(size=8)),
        ):
            self.refused(words, library.swiglu.multiply, library.check_swiglu, _abi.SwigluCall, **{**good, **change})


if __name__ == "__main__":
    main()
