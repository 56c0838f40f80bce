"""The public functions of the package say which types they take and return, to type checkers and editors."""

import importlib.util
import inspect
import subprocess
import sys
import typing
import unittest

from python_case import PACKAGE, main, need

need("numpy", "scipy")

import spmmbench  # noqa: E402
from spmmbench import _abi, _hints  # noqa: E402


def public_functions():
    """(name, function) of the functions, and of the classes' methods, that the package exports."""
    modules = [spmmbench]
    if importlib.util.find_spec("torch"):
        modules.append(importlib.import_module("spmmbench.torch"))
    for module in modules:
        for name in module.__all__:
            exported = getattr(module, name)
            if inspect.isfunction(exported):
                yield name, exported
                continue
            for method, function in vars(exported).items():
                function = getattr(function, "__func__", getattr(function, "fget", function))
                of_package = inspect.isfunction(function) and function.__module__.startswith("spmmbench")
                if of_package and (not method.startswith("_") or method in ("__init__", "__call__", "__matmul__")):
                    yield f"{name}.{method}", function


class Hints(unittest.TestCase):
    def test_every_public_function_has_a_hint_for_each_argument_and_its_result(self):
        names = []
        for name, function in public_functions():
            names.append(name)
            signature = inspect.signature(function)
            named = [
                key
                for key, argument in signature.parameters.items()
                if key not in ("self", "cls") and argument.kind is not argument.VAR_KEYWORD
            ]
            with self.subTest(name):
                self.assertEqual(
                    [key for key in named if signature.parameters[key].annotation is inspect.Parameter.empty], []
                )
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty)
        self.assertIn("Plan.__call__", names)
        self.assertIn("benchmark", names)

    def test_the_names_in_hints_are_those_of_the_interface(self):
        eight_bits = set(_abi.EIGHT_BITS)
        self.assertEqual(set(typing.get_args(_hints.Precision)), set(_abi.PRECISIONS))
        self.assertEqual(set(typing.get_args(_hints.EightBits)), eight_bits)
        self.assertEqual(set(typing.get_args(_hints.ElementType)), set(_abi.ELEMENTS) - eight_bits)
        self.assertEqual(set(typing.get_args(_hints.Layout)), set(_abi.LAYOUTS))

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_mypy_finds_nothing_in_the_package(self):
        command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir=/dev/null"]
        told = subprocess.run([*command, PACKAGE / "spmmbench"], capture_output=True, text=True, check=False)
        self.assertEqual(told.returncode, 0, told.stdout)


if __name__ == "__main__":
    main()
