"""ESMM: the table of the source's readme, 4096 x 4096 x 4096 in fp32."""

from result_data import hot_us

from .common import Line, Target, options_of, run_command, verified

# Pattern -> (ESMM ms, cuBLAS SGEMM ms, speed-up), compute only, at 4096^3.
ESMM_TABLE = {
    "11111111": (12.10, 7.19, 0.59),
    "11110000": (6.12, 7.19, 1.17),
    "11000000": (4.04, 7.19, 1.78),
    "10000000": (2.72, 7.19, 2.65),
}
ESMM_SIZE = 4096


def esmm_source(pattern):
    return f"gen:esmm?size={ESMM_SIZE}&pattern={pattern}"


def esmm_table(documents):
    hot = {}
    for row in verified(documents):
        base, options = options_of(row["matrix"]["source"].removeprefix("gen:"))
        if base == "esmm" and options.get("size") == str(ESMM_SIZE) and row["precision"] == "fp32":
            hot[options.get("pattern"), row["kernel"]] = hot_us(row)
    lines = []

    def ratio(pattern, kernel):
        dense, sparse = hot.get((pattern, "cublas_dense")), hot.get((pattern, kernel))
        return dense / sparse if dense and sparse else None

    for pattern, (esmm_ms, cublas_ms, speedup) in ESMM_TABLE.items():
        density = f"{100 * pattern.count('1') / 8:g} %"
        for what, published, kernel in (
            ("cuBLAS fp32, ms", cublas_ms, "cublas_dense"),
            ("published scheme (esmm_skip), ms", esmm_ms, "esmm_skip"),
            ("this program's esmm, ms", None, "esmm"),
        ):
            us = hot.get((pattern, kernel))
            lines.append(
                Line(f"{density}: {what}", published, us and us / 1e3, int(us is not None))
            )
        for what, published, kernel in (
            ("esmm_skip over cuBLAS", speedup, "esmm_skip"),
            ("esmm over cuBLAS", speedup, "esmm"),
        ):
            value = ratio(pattern, kernel)
            lines.append(Line(f"{density}: {what}", published, value, int(value is not None)))
    total = ratio("10000000", "esmm?extract=ab")
    lines.append(
        Line("12.5 %: esmm with both patterns over cuBLAS", 2.32, total, int(total is not None))
    )
    differs = ["Times: hot medians here, ncu's durations there.", "esmm_skip follows the published kernel's scheme "
               "(block and warp skip); esmm lists the surviving inner indices first."]  # fmt: skip
    return lines, differs


TARGETS = {
    "esmm-table": Target(
        "ESMM over cuBLAS by density, 4096³, fp32", "ESMM readme, expected results", "NVIDIA A10G",
        lambda _: run_command(*map(esmm_source, ESMM_TABLE), "-n", str(ESMM_SIZE), "--precision", "fp32", "-k",
                              "esmm,esmm_skip,esmm?extract=ab,cublas_dense", "--no-baselines"),
        esmm_table, matrices=False),
}  # fmt: skip
