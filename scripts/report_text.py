"""The words of the report: captions of the figures, and what each number means."""

CAPTIONS = {
    "performance_profile": (
        "Performance profile",
        "How often a kernel is within a factor of the fastest verified kernel of the case. A curve that "
        "starts high wins often; one that reaches 100 % early is never far behind; one that never reaches "
        "it was skipped in the rest, or took longer there than the axis shows.",
    ),
    "speedup_distribution": (
        "Speed-up, distribution",
        "Each kernel's cases in order of its own speed-up.",
    ),
    "speedup_by_matrix": (
        "Speed-up, matrix by matrix",
        "Each point is a kernel's verified case of one matrix, hot, or the geometric mean of several, such as "
        "those of two runs; matrices by group, best last.",
    ),
    "roofline": (
        "Roofline",
        "The fastest own kernel and the fastest baseline of each case. The memory roof is the copy "
        "bandwidth measured on this device times the useful operations per compulsory byte.",
    ),
    "cost_over_calls": (
        "Cost over calls",
        "Preparation plus that many products with the same A. Left: the share of cases in which a kernel "
        "takes the least time in all. Right: its time in all over that of the cheapest.",
    ),
    "preparation_gain": (
        "Preparation against gain",
        "One point per case: what a kernel's preparation takes beyond that of the baseline which is "
        "cheapest for one call, and what each call saves against it.",
    ),
    "density_curves": (
        "Density",
        "Matrices of one shape at several densities.",
    ),
    "format_space": (
        "Space of the formats",
        "Bytes that a kernel reads of A for each nonzero: indices, values and padding.",
    ),
}

DEFINITIONS = (
    (
        "hot, cold",
        "Hot: back-to-back launches over the same buffers, time per launch. Cold: the last-level "
        "cache is flushed before each isolated launch, the flush outside the timed window. Medians.",
    ),
    (
        "verified",
        "Every result was compared, element by element, with an fp64 reference over the inputs as "
        "rounded to the kernel's precision, against a bound derived from the precision and the "
        "row's length. C is filled with NaN before, and a second launch must be correct too. A wrong "
        "result is shown and enters no mean, ranking or speed-up.",
    ),
    (
        "× cuSPARSE default fp32",
        "Hot median of cuSPARSE's default CSR algorithm in fp32 over the row's hot median: what most "
        "papers divide by.",
    ),
    (
        "× best cuSPARSE",
        "The same with the fastest correct cuSPARSE algorithm at the row's own precision and layout; in tf32 "
        "also those in fp32, whose inputs have the same form in memory.",
    ),
    (
        "× Eigen fp32, × Eigen",
        "The same for rows of the CPU, with Eigen's product in fp32 and at the row's own precision.",
    ),
    ("× cuBLAS", "The same with dense cuBLAS at the row's own precision, where A fits when dense."),
    (
        "of the bound",
        "Time in which the compulsory bytes (A in CSR with 32-bit indices at that precision, every "
        "referenced row of B once, C once) pass at the measured copy bandwidth, over the hot median.",
    ),
    (
        "preparation",
        "Reordering, building the format, upload and tuning; loading the file is not counted.",
    ),
    (
        "the answer",
        "For each number of calls, the verified kernel with the least preparation plus calls times hot "
        "median. One that is less than 1 % faster per call takes over from none: that is noise. Kernels "
        "that read A as zeros and ones do not take part.",
    ),
    (
        "pays at",
        "Calls from which preparation and calls take less than those of the row that is done first when "
        "called once, or for a row order of the same kernel without it; “never” when nothing is saved. In "
        "runs of version 0.1.0: against a plain cuSPARSE call.",
    ),
    (
        "group",
        "What the file given with --groups says, else the generator, else the structure: over 2 % "
        "nonzeros; rows of very different length (coefficient of variation over 2); mean row under 8; "
        "the rest.",
    ),
    ("means", "Geometric, over the verified cases of that kernel, whose number stands beside."),
)
