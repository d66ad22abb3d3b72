#!/usr/bin/env python3
"""A network's outputs by two builds of the tool, each on the reference of its own machine: they must agree.

usage: same_outputs.py --network NAME --here TOOL --there 'COMMAND...' --folder FOLDER
"""
import argparse
import pathlib
import shlex
import struct
import subprocess
import sys

TOLERANCE = 1e-4  # of the largest magnitude: other kernels sum in other orders


def read_npy(path):
    """The float32 values of a .npy file, without NumPy."""
    data = path.read_bytes()
    assert data[:6] == b"\x93NUMPY" and data[6] == 1, path
    (header,) = struct.unpack_from("<H", data, 8)
    text = data[10:10 + header].decode()
    assert "'<f4'" in text and "'fortran_order': False" in text, text
    body = data[10 + header:]
    return struct.unpack(f"<{len(body) // 4}f", body)


def main():
    parser = argparse.ArgumentParser()
    for name in ("network", "here", "there", "folder"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    outputs = []
    for name, command in (("here", options.here), ("there", options.there)):
        folder = pathlib.Path(options.folder) / options.network / name
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(shlex.split(command) + ["run", options.network, "--lane", "cpu0", "--no-gpu", "--quiet", "--output-dir", str(folder)], check=True, timeout=1800,
                       stdout=subprocess.DEVNULL)
        outputs.append({path.name: read_npy(path) for path in sorted(folder.glob("*.npy"))})
    here, there = outputs
    if not here or here.keys() != there.keys():
        sys.exit(f"{options.network}: outputs {sorted(here)} here, {sorted(there)} there")
    worst = 0.0
    for name, values in here.items():
        if len(values) != len(there[name]):
            sys.exit(f"{options.network}: {name} has {len(values)} elements here, {len(there[name])} there")
        largest = max(abs(value) for value in values)
        worst = max(worst, max(abs(a - b) for a, b in zip(values, there[name])) / largest)
    print(f"{options.network}: largest difference, relative to the largest magnitude: {worst:.1e}")
    if not worst <= TOLERANCE:
        sys.exit(1)


if __name__ == "__main__":
    main()
