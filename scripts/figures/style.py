"""What all figures share: colours, the choice of series, names of matrices, the lines of facts below."""

import math
import textwrap
import warnings
import zlib

import matplotlib

matplotlib.use("Agg")
from matplotlib import font_manager, ticker
from matplotlib import pyplot as plt

from result_data import geomean, number
from result_series import fastest

# The first seven are Okabe and Ito's palette, with a brown for its yellow; the others are far from them
# and from each other for colour-blind readers, too. Baselines are black and grey. Colours are never
# alone: a series has a marker and a line style of its own as well.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4B1E",
    "#2B2BD0", "#B14AED", "#4A1F5C", "#A6A63F", "#A3105F", "#0B4A2C", "#5DBB46",
)  # fmt: skip
GREYS = ("#1B1F24", "#6E6E6E", "#9A9A9A", "#555555", "#B5B5B5")
# The place in COLOURS of each kernel, in GREYS of each baseline, the same on every page. Kernels that
# can be in one figure have a place each; those for a B with zeros and those of the CPU are in figures
# of their own. Others, of plug-ins, have a place by their name.
PLACES = {
    "rsh": 0, "auto": 1, "async_wcsr": 2, "csr_row_split": 3, "jagged_slices": 4, "gather_mma": 5,
    "csr_merge": 6, "async_bcsr": 7, "bitmap_dense": 8, "gap_slices": 9, "two_four": 10,
    "dense_cluster": 11, "async_wcsr_paper": 12, "csr_naive": 13,
    "esmm": 0, "esmm_skip": 1, "cpu_csr": 0, "cpu_naive": 1,
    "cusparse_csr_default": 0, "cublas_dense": 1, "eigen_csr": 1, "cusparse_csr_alg2": 2, "cusparselt": 3,
}  # fmt: skip
MARKERS = "osD^vP*XpH<>"
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (2.5, 1.5)))
INK, SOFT, GRID = "#1B1F24", "#5C6670", "#DFE3E8"

MAX_SERIES = 12  # curves that can still be told apart; what is left out is named below the figure
MAX_PANELS = 4
WIDTH = 9.6  # inches: of a figure; a page of a paper shrinks it to three quarters
NAME_LENGTH = {1: 62, 2: 46}  # letters of a matrix's name beside so many panels
SHORT_NAME = 34  # beside more
TEXT_COLUMNS = 132  # letters of a line of facts at that width
UP_TO = 8  # things left out that are named one by one

plt.rcParams.update(
    {
        "font.size": 9.5,
        "font.family": "DejaVu Sans",
        "axes.titlesize": 9.5,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": SOFT,
        "axes.labelcolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "lines.linewidth": 1.7,
        "svg.fonttype": "path",
        "svg.hashsalt": "spmmbench",
        "text.parse_math": False,  # names hold $ and _
    }
)
warnings.filterwarnings("ignore", message="Glyph .* missing from current font")
LETTERS = font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap()


class Missing(Exception):
    """The documents lack what the figure shows; the message says what."""


def shown(text, length=None):
    """The text in letters that the font has, cut in the middle where it is too long."""
    text = "".join(c if ord(c) in LETTERS else f"\\u{ord(c):04x}" for c in text)
    if length and len(text) > length:
        head = (length - 1) // 2
        text = text[:head] + "…" + text[len(text) - (length - 1 - head) :]
    return text


def listed(names, up_to=UP_TO):
    names = list(dict.fromkeys(names))
    more = len(names) - up_to
    return ", ".join(names[:up_to]) + (f" and {more} more" if more > 0 else "")


# ---- series ------------------------------------------------------------------------------------


def colour_of(kernel, baseline=False):
    """Of a kernel by its name with options, whatever page it is on."""
    name, colours = kernel.partition("?")[0], GREYS if baseline else COLOURS
    return colours[PLACES.get(name, zlib.crc32(name.encode())) % len(colours)]


def wins_of(cases):
    """label -> cases in which it is fastest."""
    wins = {}
    for rows in cases.values():
        label = fastest(rows)["label"]
        wins[label] = wins.get(label, 0) + 1
    return wins


def styles(results):
    """label -> the colour of its kernel, and marker and dash, the same in every figure of one page."""
    wins = wins_of(results.contested())
    series = results.by_series()

    def rank(label):
        score = geomean(number(row["of_bound"]) for row in series[label]) or 0
        return (-wins.get(label, 0), -score, label)

    out = {}
    for baseline in (False, True):
        group = [label for label, rows in series.items() if rows[0]["baseline"] == baseline]
        for i, label in enumerate(sorted(group, key=rank)):
            place = i + (6 if baseline else 0)
            out[label] = {
                "color": colour_of(series[label][0]["kernel"], baseline),
                "marker": MARKERS[place % len(MARKERS)],
                "ls": DASHES[(i + (2 if baseline else 0)) % len(DASHES)],
            }
    return out


def to_draw(results, rows):
    """The rows of the kernels that are drawn."""
    if not (kept := results.drawn(rows)):
        raise Missing("nothing to show of the kernels that are drawn")
    return kept


def choose_series(rows, wins, score):
    """(labels to show, labels left out). Every winner is shown while there is room, then the highest
    scores; score(rows) is None where a series cannot be drawn."""
    series = {}
    for row in rows:
        series.setdefault(row["label"], []).append(row)
    scores = {label: score(group) for label, group in series.items()}
    usable = [label for label in series if scores[label] is not None]
    usable.sort(key=lambda label: (-wins.get(label, 0), -scores[label], label))
    kept = usable[:MAX_SERIES]
    kept.sort(key=lambda label: (series[label][0]["baseline"], usable.index(label)))
    return kept, usable[MAX_SERIES:]


def left_out(labels, rule, where=""):
    """A sentence on the series that there is no room for."""
    return f"Left out{where}, {rule}: {listed(labels)}." if labels else ""


def with_wins(labels, wins):
    return [f"{label} (won {wins[label]})" if wins.get(label) else label for label in labels]


# ---- layout ------------------------------------------------------------------------------------


def panels(count, height=3.7, width=WIDTH, **options):
    figure, axes = plt.subplots(
        1, count, figsize=(width, height), squeeze=False, layout="constrained", **options
    )
    return figure, list(axes[0])


def plain_log(axis, which="y"):
    """A logarithmic axis with 0.5, 1, 2 instead of powers of ten. Call it after plotting."""
    (axis.set_yscale if which == "y" else axis.set_xscale)("log")
    low, high = axis.get_ylim() if which == "y" else axis.get_xlim()
    decades = math.log10(high / low)
    steps = (1, 1.5, 2, 3, 5, 7) if decades < 1 else (1, 2, 5) if decades < 3 else (1,)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**e for e in exponents for step in steps if low <= step * 10.0**e <= high]
    target = axis.yaxis if which == "y" else axis.xaxis
    target.set_major_locator(ticker.FixedLocator(ticks))
    target.set_major_formatter(ticker.FuncFormatter(lambda v, _: large(v)))
    target.set_minor_locator(ticker.NullLocator())


def large(value):
    """1 500 000 as 1.5M, for an axis."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def facts(results, rows):
    """Device, date, revision, N and precision: what a figure must say wherever it is copied to."""
    runs = sorted({row["run"] for row in rows})
    contexts = [results.documents[run]["context"] for run in runs]

    def each(values):
        return ", ".join(dict.fromkeys(str(value) for value in values))

    types = each(
        f"{r['precision']} in, {r['c_type']} out"
        for r in sorted(rows, key=lambda r: r["precision"])
    )
    matrices = len({row["matrix"]["name"] for row in rows})
    parts = [
        each(c["device"]["name"] for c in contexts),
        each(c["started_utc"][:10] for c in contexts),
        f"revision {each(c['git_revision'] for c in contexts)}",
        f"N = {each(sorted({row['n'] for row in rows}))}",
        types,
        f"{matrices} {'matrix' if matrices == 1 else 'matrices'}",
    ]
    if len({row["layout"] for row in rows}) > 1 or rows[0]["layout"] != "row":
        parts.append(f"B {each(row['layout'] for row in rows)}-major")
    return shown(" · ".join(part for part in parts if part))


def finish(figure, axes, results, rows, title, notes=(), columns=4):
    """Title above; legend, facts and what was left out below."""
    figure.suptitle(shown(title), x=0.01, ha="left", fontsize=11.5, fontweight="bold")
    handles = {}
    for axis in axes:
        for artist in [*axis.lines, *axis.collections]:
            label = artist.get_label()
            if label and not label.startswith("_child"):
                handles.setdefault(label, artist)
    bottom = 0.0
    inches = figure.get_figheight()
    if handles:
        longest = max(map(len, handles))
        fits = max(1, min(columns, TEXT_COLUMNS // (longest + 9)))
        legend = figure.legend(
            list(handles.values()),
            # The legend of matplotlib skips labels that begin with an underscore.
            ["\u200b" + label if label.startswith("_") else label for label in handles],
            loc="upper left", bbox_to_anchor=(0.01, -0.1 / inches), ncol=fits, handlelength=3.2,
        )  # fmt: skip
        figure.draw_without_rendering()
        bottom = legend.get_window_extent().y0 / figure.bbox.height
    lines = [facts(results, rows), *(shown(note) for note in notes if note)]
    if len(results.drawn(results.rows)) < len(results.rows):
        lines.append(
            f"Only kernels that match {shown(', '.join(results.kernels))} are drawn. They are compared with "
            "all that were measured."
        )
    wrapped = "\n".join("\n".join(textwrap.wrap(line, TEXT_COLUMNS)) for line in lines)
    figure.text(0.01, bottom - 0.12 / inches, wrapped, va="top", fontsize=8, color=SOFT)
    return figure
