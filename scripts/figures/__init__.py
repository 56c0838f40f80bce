"""The figures, one file each. draw() makes them all or says why one cannot be made."""

from . import cost, density, profile, roofline, space, speedup
from .style import Missing, plt

FIGURES = {
    "performance_profile": profile.performance_profile,
    "speedup_distribution": speedup.speedup_distribution,
    "speedup_by_matrix": speedup.speedup_by_matrix,
    "roofline": roofline.roofline,
    "cost_over_calls": cost.cost_over_calls,
    "preparation_gain": cost.preparation_gain,
    "density_curves": density.density_curves,
    "format_space": space.format_space,
}


def draw(results, baseline, only=()):
    """Yields (name, figure or None, reason). The caller closes the figures."""
    baseline = baseline or speedup.default_baseline(results)
    for name, function in FIGURES.items():
        if only and name not in only:
            continue
        try:
            yield name, function(results, baseline), ""
        except Missing as reason:
            plt.close("all")
            yield name, None, str(reason)
