#!/usr/bin/env python3
"""One self-contained HTML page from the JSON that `spmmbench run --json` writes.

  report.py results.json --out report.html
  report.py h200/*.json --title 'H200, November'

Tables, figures (embedded), the context of the measurement and how each number was obtained. The page
opens without a network and holds no script.
"""

import argparse
import base64
import html
import io
import math
import pathlib
import sys
from collections import defaultdict

from plot import BASELINES, draw, plt
from result_data import InputError, Results, cold_us, hot_us, load_document, number

MOST_ROWS = 6000  # of the table of everything; more are left to the JSON

STYLE = """
:root { --ink: #1b1f24; --soft: #5c6670; --line: #dfe3e8; --band: #f6f7f9; --accent: #0072b2;
        --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 2.5rem 1.5rem 5rem; color: var(--ink);
       background: #fff;
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 3rem 0 .6rem; padding-top: .8rem;
     border-top: 1px solid var(--line); }
p, dl, figcaption { max-width: 46rem; }
.lead { color: var(--soft); margin: 0 0 1.6rem; }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.4rem 0; padding: 0; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .7rem 1rem; min-width: 11rem; }
.card b { display: block; font-size: 1.5rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .85rem; }
.card.bad { border-color: var(--bad); } .card.bad b { color: var(--bad); }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: collapse; font-size: .86rem; line-height: 1.35; }
th, td { padding: .34rem .55rem; text-align: left; white-space: nowrap; }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; vertical-align: bottom;
           white-space: normal; }
tbody tr { border-bottom: 1px solid var(--line); }
tbody tr:nth-child(even) { background: var(--band); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.wrap { white-space: normal; min-width: 18rem; overflow-wrap: anywhere; }
tr.baseline td:first-child { color: var(--soft); }
td.bad { color: var(--bad); font-weight: 600; }
figure { margin: 1.6rem 0 2.2rem; } figure img { max-width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .92rem; }
figcaption b { color: var(--ink); }
code { font: .86em ui-monospace, "DejaVu Sans Mono", Menlo, monospace; overflow-wrap: anywhere; }
dt { font-weight: 600; margin-top: .7rem; } dd { margin: 0; }
details summary { cursor: pointer; color: var(--accent); margin: .6rem 0; }
@media print { body { max-width: none; } .scroll { overflow: visible; } }
"""

CAPTIONS = {
    "speedup_distribution": (
        "Speed-up, matrix by matrix",
        "Each point is one verified case, hot. Matrices are in order of the best own kernel; the "
        "figure after a name is its geometric mean over all points shown.",
    ),
    "performance_profile": (
        "Performance profile",
        "How often a kernel is within a factor of the fastest kernel of the same precision. A curve "
        "that starts high wins often; one that reaches 100 % early is never far behind.",
    ),
    "roofline": (
        "Against the memory roof",
        "The fastest own kernel and the fastest baseline of each case and precision. The roof is the "
        "copy bandwidth measured on this device times the useful flops per compulsory byte. Hot "
        "points can lie above it when the operands stay in the cache.",
    ),
    "density_curves": (
        "Density sweep",
        "Matrices of one shape at several densities.",
    ),
    "break_even": (
        "When preprocessing pays off",
        "Cases in which so many calls suffice to win back the preprocessing against cuSPARSE's "
        "default at the same precision. A curve that stays below 100 % never pays off in the rest.",
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
        "The same with the fastest correct cuSPARSE algorithm at the row's own precision and layout.",
    ),
    ("× cuBLAS", "The same with dense cuBLAS at the row's own precision, where A fits when dense."),
    (
        "of bound",
        "Time in which the compulsory bytes (A in its cheapest CSR at that precision, B once, C "
        "once) pass at the measured copy bandwidth, over the hot median.",
    ),
    (
        "preprocessing, pays off after",
        "Reordering, building the format, upload and tuning, loading not counted; divided by the "
        "time saved per call against cuSPARSE's default at the same precision. “never” when "
        "nothing is saved.",
    ),
    (
        "means",
        "Geometric means over the verified cases of that kernel, whose number stands beside.",
    ),
)


def text(value):
    return html.escape(str(value), quote=True)


def digits(value, decimals=None):
    """A number for reading: three significant digits, or so many decimals."""
    value = number(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if math.isinf(value):
        return "never"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    if decimals is not None and abs(value) >= 0.1**decimals:
        return f"{value:.{decimals}f}"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def table(columns, rows):
    """columns: (heading, kind) with kind "" text, "n" number, "wrap" long text. rows: cells, or
    (class of the row, cells). A cell is text, or (class, text). A column without any value is left
    out."""
    rows = [row if isinstance(row, tuple) else ("", row) for row in rows]
    used = [i for i in range(len(columns)) if any(cells[i] != "–" for _, cells in rows)]
    columns = [columns[i] for i in used]
    out = ['<div class="scroll"><table><thead><tr>']
    out += [f'<th class="{kind}">{text(heading)}</th>' for heading, kind in columns]
    out.append("</tr></thead><tbody>")
    for row_class, cells in rows:
        out.append(f'<tr class="{row_class}">')
        for (_, kind), cell in zip(columns, (cells[i] for i in used)):
            extra, shown = cell if isinstance(cell, tuple) else ("", cell)
            out.append(f'<td class="{kind} {extra}">{text(shown)}</td>')
        out.append("</tr>")
    out.append("</tbody></table></div>")
    return "".join(out)


def cards(results):
    verified = len(results.measured())
    problems = sum(row["status"] in ("wrong", "failed", "timeout") for row in results.rows)
    matrices = len({row["matrix"]["name"] for row in results.rows})
    shown = [(digits(matrices), "matrices", ""), (digits(verified), "verified measurements", "")]
    shown.append((digits(problems), "wrong, failed or timed out", "bad" if problems else ""))
    own = [line for line in results.summary() if not line["baseline"]]
    for key, name in (
        ("cusparse_default_fp32", "cuSPARSE default fp32"),
        ("cublas", "dense cuBLAS"),
    ):
        compared = [line for line in own if line[key]]
        if compared:
            # A kernel that ran on a few matrices only does not speak for the run.
            most = max(line["cases"][key] for line in compared)
            best = max(
                (ln for ln in compared if 2 * ln["cases"][key] > most), key=lambda ln: ln[key]
            )
            what = f"{best['label']} over {name}, mean of {best['cases'][key]}"
            shown.append((f"{best[key]:.2f}×", what, ""))
    body = "".join(
        f'<div class="card {kind}"><b>{text(value)}</b><span>{text(name)}</span></div>'
        for value, name, kind in shown
    )
    return f'<div class="cards">{body}</div>'


def summary_table(results):
    columns = [("kernel", ""), ("verified", "n"), ("wrong", "n"), ("failed", "n"), ("skipped", "n")]
    columns += [("fastest in", "n"), ("× cuSPARSE default fp32", "n"), ("× best cuSPARSE", "n")]
    columns += [("× cuBLAS", "n"), ("of bound", "n"), ("preprocessing, ms", "n")]
    columns += [("pays off after", "n")]
    rows = []
    for line in results.summary():
        failed = line["failed"] + line["timeout"]
        cells = [line["label"], digits(line["ok"])]
        cells += [("bad" if count else "", digits(count)) for count in (line["wrong"], failed)]
        cells += [digits(line["skipped"]), digits(line["wins"])]
        cells += [digits(line[k], 2) for k in ("cusparse_default_fp32", "cusparse_best", "cublas")]
        cells += [digits(line["of_bound"], 2), digits(line["preprocessing_ms"])]
        cells.append("–" if line["baseline"] else digits(line["break_even"]))
        rows.append(("baseline" if line["baseline"] else "", cells))
    return table(columns, rows)


def winners_table(results):
    columns = [("matrix", ""), ("rows", "n"), ("columns", "n"), ("nonzeros", "n"), ("N", "n")]
    columns += [("inputs", ""), ("fastest kernel", ""), ("hot, µs", "n"), ("cold, µs", "n")]
    columns += [("× cuSPARSE default fp32", "n"), ("× best cuSPARSE", "n"), ("of bound", "n")]
    columns += [("pays off after", "n")]
    winners = results.winners().values()
    rows = []
    for row in sorted(winners, key=lambda r: (r["matrix"]["name"], r["n"], r["precision"])):
        matrix, speedup = row["matrix"], row["speedup"]
        cells = [matrix["name"]] + [digits(matrix[k]) for k in ("rows", "cols", "nnz")]
        cells += [digits(row["n"]), row["precision"], row["label"]]
        cells += [digits(hot_us(row)), digits(cold_us(row))]
        cells += [digits(speedup["cusparse_default_fp32"], 2), digits(speedup["cusparse_best"], 2)]
        cells += [digits(row["of_bound"], 2), digits(row["break_even_calls"])]
        rows.append(("baseline" if row["baseline"] else "", cells))
    return table(columns, rows)


def troubles(results):
    """Everything without a verified time, by status and reason."""
    groups = defaultdict(list)
    for row in results.rows:
        if row["status"] != "ok":
            groups[row["status"], row["label"], row["reason"]].append(row)
    if not groups:
        return "<p>None: every case has a verified result.</p>"
    order = ["wrong", "failed", "timeout", "skipped"]
    rows = []
    for (status, label, reason), group in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), item[0])
    ):
        names = list(dict.fromkeys(row["matrix"]["name"] for row in group))
        where = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        bad = "" if status == "skipped" else "bad"
        rows.append([(bad, status), label, digits(len(group)), reason, where])
    columns = [
        ("status", ""),
        ("kernel", ""),
        ("cases", "n"),
        ("reason", "wrap"),
        ("where", "wrap"),
    ]
    return table(columns, rows)


def all_rows(results):
    if len(results.rows) > MOST_ROWS:
        return f"<p>{digits(len(results.rows))} rows: see the JSON.</p>"
    columns = [("matrix", ""), ("N", "n"), ("kernel", ""), ("inputs", ""), ("C", ""), ("order", "")]
    columns += [("layout", ""), ("status", ""), ("hot, µs", "n"), ("quartiles", "n")]
    columns += [("cold, µs", "n"), ("GFLOP/s", "n"), ("of bound", "n"), ("error / bound", "n")]
    columns += [("to repeat it", "wrap")]
    rows = []
    for row in results.rows:
        hot, verify = row["hot"], row["verify"]
        cells = [row["matrix"]["name"], digits(row["n"]), row["kernel"], row["precision"]]
        cells += [row["c_type"], row["reorder"], row["layout"]]
        cells.append(
            ("bad" if row["status"] in ("wrong", "failed", "timeout") else "", row["status"])
        )
        cells.append(digits(hot_us(row)))
        cells.append(f"{digits(hot['q1_us'])} – {digits(hot['q3_us'])}" if hot else "–")
        cells += [digits(cold_us(row)), digits(row["gflops"]), digits(row["of_bound"], 2)]
        cells += [digits(verify["error_over_bound"]) if verify else "–", row["command"]]
        rows.append(cells)
    return f"<details><summary>{digits(len(rows))} rows</summary>{table(columns, rows)}</details>"


def context_table(document):
    context, device = document["context"], document["context"]["device"]
    before, after = context["clocks_before"], context["clocks_after"]
    clocks = (
        f"{digits(before['sm_mhz'])} → {digits(after['sm_mhz'])} MHz SM, "
        f"{digits(before['temperature_c'])} → {digits(after['temperature_c'])} °C, "
        f"throttle reasons {digits(before['throttle_reasons'])} → {digits(after['throttle_reasons'])}"
    )
    lines = [
        ("device", f"{device['name']} ({device['uuid'] or 'no UUID'})"),
        ("hardware", f"{device['sm_count']} SMs, {digits(device['l2_bytes'] / 2**20)} MiB L2, "
                     f"{digits(device['memory_bytes'] / 2**30)} GiB"),
        ("copy bandwidth", f"{digits(context['copy_gb_per_s'])} GB/s, read and written"),
        ("timer floor", f"{digits(context['timer_floor_us'])} µs"),
        ("clocks", clocks),
        ("software", f"driver {device['driver_version'] or '–'}, CUDA {device['runtime_version'] or '–'}, "
                     f"cuSPARSE {device['cusparse_version'] or '–'}, cuBLAS {device['cublas_version'] or '–'}"),
        ("spmmbench", f"{context['tool_version']}, revision {context['git_revision']}, {context['build_flags']}"),
        ("started", f"{context['started_utc']} on {context['hostname']}"),
        ("seed", context["seed"]),
        ("command", " ".join(context["argv"])),
        ("protocol", ", ".join(f"{k} {v}" for k, v in context["protocol"].items())),
        ("complete", "yes" if document["complete"] else "no: the run was interrupted"),
    ]  # fmt: skip
    return table([("", ""), ("", "wrap")], [list(line) for line in lines])


def figures(results, baseline):
    out, left_out = [], []
    for name, figure, reason in draw(results, baseline):
        title, caption = CAPTIONS[name]
        if figure is None:
            left_out.append(f"{title.lower()} ({reason})")
            continue
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        data = base64.b64encode(picture.getvalue()).decode("ascii")
        out.append(
            f'<figure><img alt="{text(title)}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption><b>{text(title)}.</b> {text(caption)}</figcaption></figure>"
        )
    if left_out:
        out.append(f"<p>Not shown for lack of data: {text('; '.join(left_out))}.</p>")
    return "".join(out)


def page(documents, title, baseline):
    results = Results(documents)
    devices = list(dict.fromkeys(d["context"]["device"]["name"] for d in documents))
    title = title or f"SpMM on {', '.join(devices)}"
    started = min(d["context"]["started_utc"] for d in documents)
    revisions = ", ".join(dict.fromkeys(d["context"]["git_revision"] for d in documents))
    definitions = "".join(f"<dt>{text(t)}</dt><dd>{text(d)}</dd>" for t, d in DEFINITIONS)
    parts = [
        f"<h1>{text(title)}</h1>",
        f'<p class="lead">C = A·B with sparse A. Measured {text(started)} by spmmbench, revision '
        f"{text(revisions)}. N = {text(', '.join(map(str, results.ns)))}; inputs in "
        f"{text(', '.join(results.precisions))}.</p>",
        cards(results),
        "<h2>Kernels</h2>",
        "<p>Own kernels first, then the vendor's (grey). Speed-ups and shares are geometric means over "
        "the verified cases of each kernel, so kernels with different cases are not comparable.</p>",
        summary_table(results),
        "<h2>Figures</h2>",
        figures(results, baseline),
        "<h2>The fastest kernel of every case</h2>",
        winners_table(results),
        "<h2>Cases without a verified time</h2>",
        troubles(results),
        "<h2>How each number was obtained</h2>",
        f"<dl>{definitions}</dl>",
        "<h2>Context</h2>",
        *map(context_table, documents),
        "<h2>Everything measured</h2>",
        all_rows(results),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}"
        "</body></html>\n"
    )


def main(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", help="JSON of spmmbench run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("report.html"))
    parser.add_argument("--title")
    parser.add_argument("--baseline", choices=BASELINES, default="cusparse_default_fp32")
    args = parser.parse_args(argv)
    try:
        documents = [load_document(path) for path in args.results]
        args.out.write_text(page(documents, args.title, args.baseline), encoding="utf-8")
    except (InputError, OSError) as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 1
    print(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
