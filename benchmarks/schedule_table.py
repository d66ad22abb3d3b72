#!/usr/bin/env python3
"""Solves every instance of a folder and writes the comparison with its reference values as a Markdown table.

  schedule_table.py TOOL INSTANCES [--effort fast|default|high] [--no-bound] [--rows] [--repeat N]

TOOL is the plait program; INSTANCES holds folders with a bounds.json and the instances that it names. Each schedule is checked by
INSTANCES/evaluate.py if that exists. --rows lists every instance, not only the classes. Times are the lower quartile of --repeat runs, which
take turns: all instances once, then again. Memory is the peak of the whole process, instance file and all, but no less than what this interpreter
itself has when it starts it (some 15 MB)."""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile


def kind_of(folder, entry):
    if "best_known_us" in entry:
        return "measured on phones"
    if entry["proven_optimal"]:
        return "proven, up to 24 operators" if entry["ops"] <= 24 else "proven, 35 operators and more"
    return "wide, 196 operators and more" if entry["ops"] >= 196 else "near-serial, not proven"


def run(command):
    """The command's peak of resident memory in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("instances", type=pathlib.Path)
    parser.add_argument("--effort", default="default", choices=("fast", "default", "high"))
    parser.add_argument("--no-bound", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    checker = options.instances / "evaluate.py"
    classes, rows = collections.OrderedDict(), []
    with tempfile.TemporaryDirectory() as scratch:
        schedule, report = pathlib.Path(scratch, "schedule.json"), pathlib.Path(scratch, "report.json")
        for bounds in sorted(options.instances.glob("*/bounds.json"), reverse=True):
            for entry in json.loads(bounds.read_text())["instances"]:
                instance = bounds.parent / f"{entry['name']}.json"
                command = [options.tool, "schedule", instance, "-o", schedule, "--effort", options.effort, "--json", report, "--baselines"]
                memory = run(command + ([] if options.no_bound else ["--bound"]))
                if checker.exists():
                    subprocess.run([sys.executable, checker, instance, schedule], check=True, stdout=subprocess.DEVNULL)
                found = json.loads(report.read_text())
                reference = entry.get("best_known_us", entry.get("upper_us"))
                row = {"name": entry["name"], "ops": entry["ops"], "us": found["makespan_us"], "gap": found["makespan_us"] / reference - 1, "ms": [found["search_ms"]], "mb": memory,
                       "bound": reference / found["lower_bound_us"] if found.get("lower_bound_us") else None,
                       "heft": entry["heft_us"] / found["makespan_us"] if "heft_us" in entry else found["baselines"]["heft"] / found["makespan_us"]}
                row["again"] = command
                rows.append(row)
                classes.setdefault(kind_of(bounds.parent, entry), []).append(row)
        for _ in range(options.repeat - 1):
            for row in rows:
                run(row["again"])
                row["ms"].append(json.loads(report.read_text())["search_ms"])
    for row in rows:
        row["ms"] = sorted(row["ms"])[(options.repeat - 1) // 4]
    if options.rows:
        print("| instance | operators | found us | over reference | search ms | MB | HEFT over ours |\n|---|---|---|---|---|---|---|")
        for r in rows:
            print(f"| {r['name']} | {r['ops']} | {r['us']:.1f} | {100 * r['gap']:+.2f} % | {r['ms']:.1f} | {r['mb']:.0f} | {r['heft']:.2f}x |")
        print()
    print("| instances | number | over reference: mean | worst | search ms: mean | worst | most MB | HEFT's time over ours (geometric mean) | reference over bound (geometric mean) |\n|---|---|---|---|---|---|---|---|---|")
    for name, members in classes.items():
        mean = lambda key: sum(r[key] for r in members) / len(members)
        geometric = lambda key: math.exp(sum(math.log(r[key]) for r in members) / len(members))
        bound = "" if options.no_bound else f"{geometric('bound'):.2f}"
        print(f"| {name} | {len(members)} | {100 * mean('gap'):+.2f} % | {100 * max(r['gap'] for r in members):+.2f} % | {mean('ms'):.0f} | "
              f"{max(r['ms'] for r in members):.0f} | {max(r['mb'] for r in members):.0f} | {geometric('heft'):.2f}x | {bound} |")


if __name__ == "__main__":
    main()
