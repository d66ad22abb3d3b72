#!/usr/bin/env python3
"""Checks that every #include follows the rooms: a file may include its own room, the rooms that CMakeLists.txt lists for it,
and what those may include. Third-party and standard headers (angle brackets) are free, except where ONLY says otherwise."""
import pathlib
import re
import sys

# Headers that only some rooms may see.
ONLY = {
    r"(google/protobuf|onnx/)": {"formats"},
    r"flatbuffers/": {"formats"},
    r"xnnpack\.h": {"xnnpack"},
    r"pthreadpool\.h": {"xnnpack"},
    r"CL/": {"opencl"},
    r"xgboost/": {"predictors"},
}
# Who may include what besides the rooms: the public headers belong to everyone.
PUBLIC = "include/plait"


def read_rooms(root):
    rooms = {}
    for name, folder, rest in re.findall(r"^plait_room\((\w+)\s+(\S+?)((?:\s[^)]*)?)\)", (root / "CMakeLists.txt").read_text(), re.M):
        uses = re.search(r"USES\s+((?:(?!IF\b)\w+\s*)+)", rest)
        rooms[name] = (folder, uses.group(1).split() if uses else [])
    return rooms


def closure(rooms, name, seen=None):
    seen = set() if seen is None else seen
    for used in rooms[name][1]:
        if used not in seen:
            seen.add(used)
            closure(rooms, used, seen)
    return seen


def main():
    root = pathlib.Path(sys.argv[1])
    rooms = read_rooms(root)
    assert len(rooms) >= 10, "the room list in CMakeLists.txt was not understood"
    by_folder = sorted(((folder, name) for name, (folder, _) in rooms.items()), key=lambda p: -len(p[0]))

    def room_of(path):
        return next((name for folder, name in by_folder if path.startswith(folder + "/")), None)

    faults, checked = [], 0
    for path in sorted(list(root.glob("src/**/*")) + list(root.glob("backends/**/*")) + list(root.glob("predictors/**/*")) + list(root.glob("include/**/*"))):
        if path.suffix not in (".h", ".hpp", ".cc"):
            continue
        name = str(path.relative_to(root))
        room = room_of(name)
        checked += 1
        if room is None and not name.startswith(PUBLIC):
            faults.append(f"{name}: belongs to no room of CMakeLists.txt")
            continue
        allowed = {room} | (closure(rooms, room) if room else set())
        for number, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not m:
                continue
            kind, header = m.groups()
            for pattern, who in ONLY.items():
                if re.match(pattern, header) and room not in who:
                    faults.append(f"{name}:{number}: only {', '.join(sorted(who))} may include {header}")
            if kind == "<" or header.startswith("plait/"):
                if room is None and kind == "<" and "/" in header:
                    faults.append(f"{name}:{number}: public headers include only the standard library and each other, not {header}")
                continue
            target = room_of(header)
            if target is None:
                if not (root / header).exists():
                    faults.append(f"{name}:{number}: {header} is not written from the project's root")
                else:
                    faults.append(f"{name}:{number}: {header} belongs to no room")
            elif target not in allowed:
                faults.append(f"{name}:{number}: room {room} must not include {header} (room {target})")
    print("\n".join(faults) or f"{checked} files, {len(rooms)} rooms: every include follows the rooms")
    return 1 if faults or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
