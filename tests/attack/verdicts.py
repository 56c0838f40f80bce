"""What the program says of wrong kernels and of unchanged times."""

import os
import subprocess
import sys

from area import ROOT, Attack, require


class Planted(Attack):
    """Kernels that are nearly right (tests/faults): each must be called wrong, and the right one right."""

    def cases(self):
        faults = self.tests / "spmmbench_faults"
        tests = ROOT / "tests" / "cli" / "test_planted.py"
        environment = {**os.environ, "SPMMBENCH": self.program, "SPMMBENCH_FAULTS": str(faults)}
        listing = subprocess.run([sys.executable, "-c", LIST_TESTS, tests.parent, tests.stem], check=True, text=True,
                                 capture_output=True, env=environment).stdout.split()  # fmt: skip
        for name in listing:
            yield name, lambda n=name: self.one(tests, n, environment)

    def one(self, tests, name, environment):
        result = subprocess.run([sys.executable, tests, name], check=False, capture_output=True, text=True, env=environment)
        require(result.returncode == 0, result.stderr[-500:])


LIST_TESTS = """
import sys, unittest
sys.path.insert(0, sys.argv[1])
for suite in unittest.defaultTestLoader.loadTestsFromName(sys.argv[2]):
    for test in suite:
        print(test.id().split(".", 1)[1])
"""


class Gate(Attack):
    """Comparisons of unchanged runs, simulated: any SLOWER in at most 1 % of them."""

    ALLOWED = 0.01

    def cases(self):
        comparisons = self.count(200)
        program = self.tests / "spmmbench_gate_simulation"
        result = subprocess.run([program, str(comparisons), "1928"], check=True, capture_output=True, text=True)
        for line in result.stdout.splitlines()[2:]:
            name, unchanged, _ = line.rsplit(maxsplit=2)
            yield name.strip(), lambda n=int(unchanged), c=comparisons: self.few(n, c)
        self.comparisons = comparisons

    def few(self, false_alarms, comparisons):
        # More than this is seen in one simulation of 1,000 where the rate is what is allowed.
        most = next(k for k in range(comparisons) if binomial_tail(comparisons, self.ALLOWED, k) < 0.001)
        require(false_alarms <= most, f"{false_alarms} of {comparisons} comparisons")


def binomial_tail(trials, rate, above):
    """Probability of more than `above` successes."""
    term, total = (1 - rate) ** trials, 0.0
    for k in range(above + 1):
        total += term
        term *= (trials - k) / (k + 1) * rate / (1 - rate)
    return 1 - total
