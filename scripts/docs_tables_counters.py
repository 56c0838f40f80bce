"""The page of docs_tables.py on what the counters of a launch say."""

from docs_tables_data import digits, document, table

RUN = "h200/profile-auto-n128.json"
PER_US = 1e6  # bytes a microsecond in a TB/s


def line(row):
    metrics, hot = row["metrics"], row["hot"]["median_us"]
    l2, memory = metrics["profile_l2_bytes"], metrics["profile_dram_bytes"]
    return [
        f"`{row['matrix']['name']}`",
        f"`{row['pick']['kernel']}`",
        digits(hot),
        f"{row['of_bound']:.2f}",
        f"{l2 / hot / PER_US:.1f}",
        f"{l2 / row['compulsory_bytes']:.1f}",
        f"{memory / hot / PER_US:.1f}",
        f"{metrics['profile_sm_throughput_pct']:.0f}",
    ]


def counters():
    rows = sorted((row for row in document(RUN) if row["status"] == "ok"), key=lambda row: -row["of_bound"])
    head = ["matrix", "picked", "us", "of the bound", "L2 cache, TB/s", "L2 bytes over compulsory ones", "memory, TB/s", "SM, %"]
    return f"""# What limits irregular products

`auto`, fp16, N = 128, on an H200: counters of one launch over the hot time (`results/{RUN}`). Bytes at the L2 cache are all that it reads and writes. ncu empties the cache first, so matrices that it holds read less from memory when they are hot. "SM" is the throughput of the multiprocessors, of their peak.

{table(head, [line(row) for row in rows])}"""
