"""The page of scripts/report.py: documents to HTML."""

import pathlib
import re

import jinja2
from markupsafe import Markup

from figures import BASELINES, draw
from figures.speedup import default_baseline
from figures.style import plt, styles
from plot import picture
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
from result_series import Results, answers

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
    sections = [("kernels", "Kernels"), ("figures", "Figures"), ("answer", "Answers")]
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
