#!/usr/bin/env python3
"""Runs `plait bench` on networks and writes its figures as a Markdown table: every lane alone, the plan, how much faster it is.

  zoo_table.py TOOL [MODEL...] [-- BENCH FLAGS...]
  zoo_table.py build/release/plait -- --clusters 0 --opencl-cpu 1 --rounds 31
  zoo_table.py build/release/plait resnet50 -- --clusters 0 --opencl-cpu 1 --handoff-latency 300

TOOL is the plait program; without MODEL the whole zoo is run. Lanes and the plan take turns within each network's run."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ZOO = ("mobilenet_v2", "mobilenet_v3_large", "resnet50", "inception_v3", "squeezenet1_1", "efficientnet_b0", "densenet121", "vit_ti_16", "vit_b_16",
       "nasnet_mobile")


def interval(value, bounds, digits):
    return f"{value:.{digits}f} [{bounds[0]:.{digits}f}, {bounds[1]:.{digits}f}]"


def row_of(report):
    by_name = {entry["contender"]: entry for entry in report["benchmarks"]}
    plan = by_name["plan"]
    lanes = [entry["median_us"] / 1e3 for name, entry in by_name.items() if name.startswith("lane:")]
    all_cpu = f"{by_name['all-cpu']['median_us'] / 1e3:.1f}" if "all-cpu" in by_name else "-"
    return [plan["model"], *(f"{ms:.1f}" for ms in lanes), all_cpu, interval(plan["median_us"] / 1e3, [us / 1e3 for us in plan["ci95_us"]], 1),
            f"{plan['predicted_us'] / 1e3:.1f}", interval(plan["speedup_over_best_lane"], plan["speedup_over_best_lane_ci95"], 2),
            interval(plan["share_of_summed_lane_speeds"], plan["share_of_summed_lane_speeds_ci95"], 2),
            f"{plan['planning_us'] / 1e3:.0f}", f"{max(entry['max_rel_error'] for entry in report['benchmarks']):.0e}",
            str(sum(entry["reference_fallbacks"] for entry in report["benchmarks"]))]


def main():
    arguments = sys.argv[1:]
    flags = []
    if "--" in arguments:
        flags = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args(arguments)
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for i, model in enumerate(options.models or ZOO):
            path = pathlib.Path(scratch, "report.json")
            done = subprocess.run([options.tool, "bench", model, "--quiet", "--json", str(path), *flags], stdout=subprocess.DEVNULL)
            if done.returncode != 0:
                print(f"{model}: plait bench ended with {done.returncode}", file=sys.stderr)
                failed = True
                continue
            report = json.loads(path.read_text())
            if i == 0:
                lanes = [f"{lane['name']}, ms" for lane in report["context"]["lanes"]]
                head = ["network", *lanes, "all-cpu, ms", "plan, ms", "predicted, ms", "over the best lane", "share of summed lane speeds", "planning, ms", "output difference",
                        "fallbacks"]
                print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
            print("| " + " | ".join(row_of(report)) + " |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
