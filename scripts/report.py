#!/usr/bin/env python3
"""One self-contained HTML page from the JSON that `spmmbench run --json` writes.

  report.py results.json --out report.html
  report.py h200/*.json --title 'H200, November'
  report.py before.json after.json        two runs side by side
  report.py results.json --groups groups.csv

The answer of each matrix, every kernel, figures, every measurement with its samples, and how each number
was obtained. The page opens without a network and asks for nothing from elsewhere.
"""

import argparse
import pathlib
import re
import sys

try:
    import jinja2
    from markupsafe import Markup

    from figures import draw
    from figures.speedup import BASELINES, default_baseline
    from figures.style import plt, styles
    from plot import picture
except ImportError as error:
    sys.exit(
        f"{error.name} is missing; on Debian: apt-get install python3-jinja2 python3-matplotlib"
    )
from command_line import Parser
from report_rows import facets, script_data
from report_tables import (
    VARIABLES,
    answer_table,
    answers_left_out,
    cards,
    context_facts,
    kernel_table,
    label_runs,
    trouble_table,
)
from report_text import CAPTIONS, DEFINITIONS
from result_data import InputError, load_document, readable, write_whole
from result_series import Results, answers, load_groups

TEMPLATES = pathlib.Path(__file__).resolve().parent / "report"

# ---- figures -----------------------------------------------------------------------------------


def inline_svg(svg, prefix):
    """A figure of matplotlib as part of the page: unique ids, the page's colours, no fixed size."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true"', svg, count=1)
    svg = re.sub(r' id="([^"]+)"', rf' id="{prefix}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(
        r"(fill|stroke): (#[0-9a-f]{6})", lambda m: f"{m[1]}: {VARIABLES.get(m[2], m[2])}", svg
    )
    return re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)


def drawn_figures(results, baseline):
    out, missing = [], []
    for i, (name, figure, reason) in enumerate(draw(results, baseline)):
        title, caption = CAPTIONS[name]
        if figure is None:
            missing.append(f"{title.lower()} ({reason})")
            continue
        svg = picture(figure, "svg").decode("utf-8")
        plt.close(figure)
        out.append({"title": title, "caption": caption, "svg": Markup(inline_svg(svg, f"f{i}"))})
    return out, "; ".join(missing)


# ---- the page ----------------------------------------------------------------------------------


def page(documents, title, baseline, groups):
    label_runs(documents)
    results = Results(documents, groups)
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    found = answers(results)
    baseline = baseline or default_baseline(results)
    compared = any(row["speedup"][baseline] for row in results.ranked())
    devices = ", ".join(dict.fromkeys(d["context"]["device"]["name"] for d in documents))
    dates = ", ".join(dict.fromkeys(d["context"]["started_utc"][:10] for d in documents))
    revisions = ", ".join(dict.fromkeys(d["context"]["git_revision"] for d in documents))
    pictures, missing = drawn_figures(results, baseline)
    sections = [("answer", "Answers"), ("kernels", "Kernels"), ("figures", "Figures")]
    sections += [("runs", "Two runs")] if len(documents) > 1 else []
    sections += [("rows", "Every measurement"), ("troubles", "Not verified"), ("method", "Method")]
    template = templates.get_template("page.html")
    template.globals["table"] = templates.get_template("table.html").module.table
    return template.render(
        title=title or f"SpMM on {devices}",
        lead=f"{dates}, revision {revisions}; N = {', '.join(map(str, results.ns))}; "
        f"inputs in {', '.join(results.precisions)}.",
        style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "page.js").read_text(encoding="utf-8")),
        data=script_data(results, found),
        cards=cards(results, baseline),
        sections=[*sections, ("context", "Context")],
        facets=facets(results),
        unanswered=[d["name"] for d in documents if d["answers"] is None],
        left_out=answers_left_out(results),
        answers=answer_table(results, found, baseline, styles(results), templates),
        kernels=kernel_table(results),
        troubles=trouble_table(results),
        figures=pictures,
        divisor=BASELINES[baseline] if compared else "",
        missing=missing,
        definitions=DEFINITIONS,
        runs=[{"label": d["label"], "context": context_facts(d)} for d in documents],
    )


def main(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON of spmmbench run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("report.html"))
    parser.add_argument("--title")
    parser.add_argument("--groups", help="CSV with the columns name and group (or kind)")
    parser.add_argument(
        "--baseline",
        choices=BASELINES,
        help="of the speed-ups; default: the first of these that the run has",
    )
    args = parser.parse_args(argv)
    try:
        documents = [load_document(path) for path in args.results]
        groups = load_groups(args.groups) if args.groups else None
        title = readable(args.title) if args.title else None
        write_whole(args.out, page(documents, title, args.baseline, groups).encode("utf-8"))
    except InputError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"report.py: {readable(str(error.filename))}: {error.strerror}", file=sys.stderr)
        return 1
    print(readable(str(args.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
