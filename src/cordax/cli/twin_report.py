"""The report of `cordax twin` as one HTML page."""

import base64
import io
from html import escape
from pathlib import Path

import numpy as np

from .._base.atomic_files import replacing
from ..identification.messages import outliers, sentences, step_matters, towards_zero
from ..identification.twin import Twin

_COLOURS = {"accurate": "#1a7f37", "usable": "#9a6700", "poor": "#cf222e", "useless": "#cf222e"}
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
    "img{max-width:100%}.verdict{font-size:1.4em;font-weight:bold}pre{overflow-x:auto}"
)


def shared_rows(twin: Twin) -> list[dict]:
    """Estimates of the parameters that all windows share."""
    fit = twin.fit
    interval, errors = np.asarray(fit.interval()), np.asarray(fit.standard_errors)
    return [
        {
            "name": name,
            "unit": fit.parameters.units[i],
            "start": float(fit.start[i]),
            "estimate": float(fit.values[i]),
            "standard_error": float(errors[i]),
            "interval_95": interval[i].tolist(),
        }
        for i, name in enumerate(fit.names)
        if not name.startswith("state0")
    ]


def warnings_of(twin: Twin) -> list[str]:
    """Everything that limits trust in the estimates."""
    fit = twin.fit
    found = [] if bool(fit.succeeded) else [fit.reason]
    found += fit.unidentifiable() + outliers(fit) + towards_zero(fit)
    found += sentences(fit) + step_matters(fit)
    return found + [f"{name} ended at its bound" for name in fit.at_bounds()]


def write_report(path: Path, name: str, twin: Twin, notes: list[str]) -> Path:
    """Write the page; figures are contained in it. The file appears complete or not at all."""
    import matplotlib

    matplotlib.use("Agg")  # writes files without a window system
    import matplotlib.pyplot as plt

    from ..plot import plot_fit, plot_validation

    word, reasons = twin.verdict()
    colour = _COLOURS.get(word, "#222")
    parts = [
        f"<h1>{escape(name)}: digital twin</h1>",
        f'<p class="verdict" style="color:{colour}">Predictions are {word}.</p>',
        _list(reasons),
        "<h2>Parameters</h2>",
        _table(
            ["parameter", "start", "estimate", "standard error", "95 % interval"],
            [
                [
                    f"{row['name']} [{row['unit']}]" if row["unit"] else row["name"],
                    f"{row['start']:.6g}",
                    f"{row['estimate']:.6g}",
                    f"{row['standard_error']:.2g}",
                    f"{row['interval_95'][0]:.6g} to {row['interval_95'][1]:.6g}",
                ]
                for row in shared_rows(twin)
            ],
        ),
    ]
    if twin.undetermined:
        parts.append(
            "<p>Not fitted, because the windows do not determine them to 10 % beside the others: "
            f"{escape(', '.join(twin.undetermined))}.</p>"
        )
    if twin.unneeded:
        parts.append(
            "<p>Kept at the values of the file, because the fit explains the log without them: "
            f"{escape(', '.join(twin.unneeded))}.</p>"
        )
    found = warnings_of(twin)
    parts += ["<h2>Warnings</h2>", _list(found) if found else "<p>None.</p>"]
    parts.append("<h2>Prediction of the windows left out</h2>")
    parts.append(
        "<p>The initial state was fitted to the grey part of each window, everything else to other "
        "windows. Trivial predictors: the last value stays (hold), or the mean does.</p>"
    )
    for times, check in zip(twin.left_out_times, twin.validations, strict=True):
        rows = [
            [
                channel, f"{e.rms:.3g}", f"{100 * e.fraction:.1f} %",
                f"{e.phase:.1f}" if np.isfinite(e.phase) else "-", f"{100 * e.coverage:.0f} %",
                f"{e.hold:.3g}", f"{e.mean:.3g}", ", ".join(f"{x:.2g}" for x in e.per_second[:12]),
            ]
            for channel, e in check.errors.items()
        ]  # fmt: skip
        header = ["channel", "RMS error", "of motion", "phase [deg]", "in band", "hold", "mean"]
        parts.append(_table([*header, "RMS error in each second"], rows))
        figure = plot_validation(check, f"left out: {times[0]:.4g} to {times[1]:.4g} s of the log")
        parts.append(_image(figure))
        plt.close(figure)
    parts.append("<h2>Windows that were fitted</h2>")
    for i in range(min(len(twin.fit.trials), 3)):
        figure = plot_fit(twin.fit, i)
        parts.append(_image(figure))
        plt.close(figure)
    parts.append(f"<pre>{escape(twin.fit.residual_summary())}</pre>")
    parts += ["<h2>How the logs were read</h2>", _list(notes)]
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
    )
    page += f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")
    return path


def _list(lines: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _table(header: list[str], rows: list[list[str]]) -> str:
    cells = lambda row, tag: "".join(f"<{tag}>{escape(x)}</{tag}>" for x in row)
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><tr>{cells(header, 'th')}</tr>{body}</table>"


def _image(figure) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return f'<p><img src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"></p>'
