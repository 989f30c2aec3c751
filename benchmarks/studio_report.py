"""What docs/studio.md shows of studio.py and studio_screens.py: python benchmarks/studio_report.py.

Says of each figure which model, machine and day it is of; what was not measured is named, and has no number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE, RESULTS = HERE.parent / "docs" / "studio.md", HERE / "results"
SCREENS = {
    "create-light": "A prompt has become an object, beside a person of 1.75 m",
    "variants": "Four variants side by side",
    "progress": "While tokens are decoded",
    "wireframe-dark": "Wireframe, in dark colours",
    "planner": "The planner's frontier",
    "engine-dark": "The live engine",
    "phone": "On a phone",
}
Report = dict[str, Any]


def read(what: str, folder: Path) -> Report | None:
    """The result of the bundled model, else that of the small one."""
    for name in (f"studio_{what}.json", f"studio_{what}_small.json"):
        if (path := folder / name).is_file():
            found: Report = json.loads(path.read_text(encoding="utf-8"))
            return found
    return None


def source(report: Report) -> str:
    machine = report["machine"]
    model = "the bundled model" if report["model"] == "bundled" else f"the {report['model']}"
    load = "" if machine["load"] is None else f", load {machine['load']:.1f}"
    return f"{model}, {machine['cpu']}, {machine['cores']} cores{load}, {report['date'][:10]}: `{report['command']}`"


def both(found: dict[str, float | None]) -> str:
    return " / ".join("–" if found[name] is None else f"{found[name]:.2f}" for name in ("p50", "p95"))


def of_load(report: Report) -> str:
    head = "clients | objects/minute | first preview, s, p50 / p95 | object, s, p50 / p95 | lost | wrong, of compared"
    lines = [f"| {head} |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {r['clients']} | {r['objects_per_minute']:.0f} | {both(r['first_preview_s'])} | {both(r['object_s'])} "
        f"| {r['lost']} | {len(r['wrong'])} of {r['checked']} |"
        for r in report["runs"]
    ]
    gain = "The small model's steps last as long as they are told to: this shows no gain from sharing them."
    if report["model"] == "bundled":
        alone = report["one_at_a_time"]["objects_per_minute"]
        times = report["gain_at_8"]
        gain = f"Eight clients before one slot: {alone:.0f} objects/minute; sharing steps gives {times:.2f} times that."
    return "\n".join([*lines, "", gain])


def of_page(report: Report) -> str:
    aims = report["aims_s"]
    return (
        f"From Enter in Chromium, one user, {report['presses']} objects: the first preview is in view after "
        f"{both(report['first_preview_s'])} s (p50 / p95; aim {aims['first_preview']:g}), the finished mesh after "
        f"{both(report['final_s'])} s (aim {aims['final']:g})."
    )


def of_kill(report: Report) -> str:
    # Fields that an older result does not have were not measured.
    more = "".join(
        f"{len(report[name])} {text}, "
        for name, text in (("given_up", "given up"), ("unended", "without an end"))
        if name in report
    )
    return (
        f"{report['kills']} times `kill -9` under load: {report['accepted']} jobs accepted, "
        f"{len(report['lost'])} lost, {more}{len(report['broken'])} objects "
        f"broken, {len(report['changed_after_a_kill'])} changed, {len(report['wrong'])} of {report['checked']} "
        f"compared wrong, {len(report['parts_left'])} parts of files left."
    )


def of_fuzz(report: Report) -> str:
    grown = report["at_the_end"]["resident_mb"] - report["after_a_fifth"]["resident_mb"]
    return (
        f"{report['requests']:,} fuzzed requests: {len(report['failures'])} answers of 500 or above or none, "
        f"{grown} MB more memory after the first fifth, {report['files']} files for {report['objects']} objects."
    )


def screens(folder: Path = PAGE.parent / "studio") -> str:
    """The pictures that there are."""
    found = [f"![{text}](studio/{name}.png)" for name, text in SCREENS.items() if (folder / f"{name}.png").is_file()]
    return "\n\n".join(found)


def measured(folder: Path = RESULTS) -> str:
    """The figures that there are."""
    parts: list[str] = []
    for what, write in (("load", of_load), ("page", of_page), ("kill", of_kill), ("fuzz", of_fuzz)):
        report = read(what, folder)
        if report is None:
            parts.append(f"Not measured yet: `python benchmarks/studio.py {what}`.")
        else:
            parts += [write(report), f"({source(report)})"]
    return "\n\n".join(parts)


def filled(page: str) -> str:
    """The page with both in their places.

    Raises:
        SystemExit: one of the places is missing.
    """
    for name, text in (("screens", screens()), ("measured", measured())):
        begin, end = f"<!-- {name}: python benchmarks/studio_report.py -->", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        if end not in rest:
            raise SystemExit(f"{PAGE} has no place for what is {name}; put back {begin} and {end}")
        page = f"{head}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"
    return page


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
