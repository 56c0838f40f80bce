"""HpcKernelBench (September 2026): its protocol for SpMM, for the variants that this program has."""

from dataclasses import dataclass

from result_data import geomean, number

from .common import verified

CALLS = 100  # over which its amortised variant spreads conversion and upload
NS = "32:512:x2"
REPETITIONS = "100"
REFERENCES = ("cusparse_csr_default", "eigen_csr")  # what speed-ups are over, on a GPU and on a CPU


@dataclass
class Variant:
    """One table. arguments: of `run`. amortised: time and conversion of CALLS calls, over CALLS."""

    title: str
    arguments: tuple
    amortised: bool = False

    def command(self, matrices):
        sampling = ("--min-samples", REPETITIONS, "--max-samples", REPETITIONS, "--max-seconds", "60")
        return ["run", *matrices, "-n", NS, *self.arguments, *sampling, "-q"]

    def table(self, documents):
        """One row a case, in the words of the protocol: median, least and most, in microseconds."""
        return [self.line(row) for row in verified(documents)]

    def line(self, row):
        samples = [] if self.amortised else row["hot"]["samples_us"]
        median = row["calls_us"][str(CALLS)] / CALLS if self.amortised else row["hot"]["median_us"]
        return {
            "matrix": row["matrix"]["name"],
            "n": row["n"],
            "kernel": row["kernel"],
            "precision": row["precision"],
            "median_us": median,
            "least_us": min(samples, default=None),
            "most_us": max(samples, default=None),
            "error_over_bound": number(row["verify"]["error_over_bound"]),
        }


VARIANTS = {
    "fp32": Variant("Kernel only, fp32", ("--precision", "fp32")),
    "low": Variant("Kernel only, fp16 and tf32", ("--precision", "fp16,tf32")),
    "amortised": Variant(
        f"Conversion and upload of A over {CALLS} calls, fp32 and fp16",
        ("--precision", "fp32,fp16", "--calls-curve", str(CALLS)),
        amortised=True,
    ),
    "cpu": Variant("CPU, fp32", ("--precision", "fp32", "--device", "-1")),
}
DIFFERS = (
    "Its variants with 0/1 entries and with integers are left out: no kernel here has them.",
    "It names 24 matrices; these are the matrices at hand.",
    "It warms up ten times and times 100 launches by an event pair each; here launches warm up for 5 ms, and a sample "
    "is a batch of launches of at least 0.5 ms, so that the events' own time does not count. Least and most are "
    "therefore of means over a batch.",
    "Amortised: preparation, upload and the calls are measured together, from a flushed cache and A in host memory, "
    "three times, of which the median counts.",
    "Its error is over |A||B|; here it is over the derived bound, a multiple of |A||B| by precision and row length. A "
    "row that is not within it, or that fails the exact test, has no time.",
)


def summary(table):
    """(heads, lines): of each kernel and precision the mean speed-up over the reference, by N."""
    times = {}
    for line in table:
        case = (line["precision"], line["n"], line["matrix"])
        times.setdefault((line["kernel"], line["precision"]), {})[case] = line["median_us"]
    ns = sorted({line["n"] for line in table})
    reference = next((name for name in REFERENCES if any(kernel == name for kernel, _ in times)), None)
    lines = []
    for (kernel, precision), own in sorted(times.items()):
        base = times.get((reference, precision), {})
        means = [geomean(base[case] / us for case, us in own.items() if case in base and case[1] == n) for n in ns]
        lines.append([kernel, precision, *("-" if mean is None else f"{mean:.2f}" for mean in means), str(len(own))])
    return ["kernel", "precision", *(f"N = {n}" for n in ns), "cases"], lines, reference
