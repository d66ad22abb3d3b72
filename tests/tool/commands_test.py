#!/usr/bin/env python3
"""The tool's commands from outside: exit codes, help, and what they write.   commands_test.py PLAIT [CLASS]"""
import json
import os

import tool

COMMANDS = ["devices", "inspect", "calibrate", "plan", "run", "bench", "export", "schedule"]


class Usage(tool.ToolTest):
    def test_help_of_every_command(self):
        overview = self.succeed("--help")
        for command in COMMANDS:
            with self.subTest(command):
                self.assertIn(command, overview)
                text = self.succeed(command, "--help")
                self.assertIn(f"Usage: plait {command}", text)
                self.assertIn("Example", text)

    def test_wrong_use_ends_with_2(self):
        for arguments in ([], ["nonsense"], ["run"], ["run", "squeezenet1_1", "--nonsense"], ["run", "a", "b"], ["bench"], ["export", "squeezenet1_1"],
                          ["bench", "squeezenet1_1", "--rounds", "0"], ["bench", "squeezenet1_1", "--rounds", "many"],
                          ["plan", "squeezenet1_1", "--effort", "enormous"], ["schedule"],
                          ["plan", "squeezenet1_1", "--plan", "a.json", "--random-plan", "1"],
                          ["run", "squeezenet1_1", "--lane", "cpu0", "--plan", "a.json"],
                          ["run", "squeezenet1_1", "--lane", "cpu0", "--random-plan", "1"]):
            with self.subTest(arguments):
                done = self.plait(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertNotEqual(done.stderr, "")

    def test_lanes_that_are_lacking(self):
        self.refuse(["run", "squeezenet1_1", "--no-gpu", "--lane", "gpu7"], "gpu7", "plait devices")
        for clusters in ("5-2", "x", "0/", "0/0", "100000"):
            with self.subTest(clusters):
                self.refuse(["run", "squeezenet1_1", "--no-gpu", "--clusters", clusters], "--clusters")
        everything = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        self.refuse(["run", "squeezenet1_1", "--opencl-cpu", everything], f"--opencl-cpu {everything}: ")
        self.refuse(["run", "squeezenet1_1", "--opencl-cpu", "0-"], "--opencl-cpu: ", "0-")

    def test_devices_and_inspect_as_json(self):
        devices = json.loads(self.succeed("devices", "--no-gpu", "--json", "-"))
        self.assertTrue(devices["lanes"])
        self.assertTrue(json.loads(self.succeed("inspect", "squeezenet1_1", "--no-gpu", "--json", "-")))
        self.assertIn("resnet50", [network["name"] for network in json.loads(self.succeed("inspect", "--json", "-"))["zoo"]])


class Runs(tool.ToolTest):
    def test_exported_network_gives_the_same_outputs(self):
        values = [((i * 7919) % 2001 - 1000) / 1000 for i in range(3 * 224 * 224)]
        image = tool.write_npy(self.folder / "image.npy", [1, 3, 224, 224], values)
        name = self.input_of("squeezenet1_1")
        outputs = []
        for extension in ("", ".onnx", ".json"):
            model = "squeezenet1_1" + extension
            if extension:
                self.succeed("export", "squeezenet1_1", "-o", model)
            out = self.folder / ("out" + extension)
            self.succeed("run", model, "--no-gpu", "--lane", "cpu0", "--input", f"{name}={image}", "--output-dir", out)
            outputs.append({path.name: tool.read_npy(path) for path in out.iterdir()})
        for other in outputs[1:]:
            self.assertEqual(other.keys(), outputs[0].keys())
            for key, (shape, expected) in outputs[0].items():
                self.assertEqual(other[key][0], shape)
                largest = max(map(abs, expected))
                self.assertGreater(largest, 0)
                self.assertLessEqual(max(abs(a - b) for a, b in zip(other[key][1], expected)) / largest, 1e-5)

    def input_of(self, model):
        self.succeed("export", model, "-o", "names.json")
        graph = json.loads((self.folder / "names.json").read_text())
        (name,) = graph["inputs"]
        return name

    def test_names_become_file_names(self):
        model = self.write("names.onnx", tool.onnx_model("Relu", source="in/x:0", target="scores/out:0"))
        x = tool.write_npy(self.folder / "x.npy", [1, 4], [1.5, -2, 0.25, -0.5])
        self.succeed("run", model, "--no-gpu", "--lane", "cpu0", "--input", f"in/x:0={x}", "--output-dir", "out")
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["scores_out_0.npy"])
        self.assertEqual(tool.read_npy(self.folder / "out" / "scores_out_0.npy"), ((1, 4), [1.5, 0, 0.25, 0]))

    def test_trace(self):
        self.succeed("run", "squeezenet1_1", "--no-gpu", "--no-tune", "--effort", "fast", "--trace", "trace.json")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        self.assertGreaterEqual(len(slices), 26)  # SqueezeNet's convolutions
        self.assertTrue(all(event["dur"] > 0 and event["ts"] >= 0 and event["name"] for event in slices))
        named = {event["tid"] for event in events if event["name"] == "thread_name"}
        self.assertTrue({event["tid"] for event in slices} <= named)
        for start in (event for event in events if event["ph"] == "s"):
            self.assertTrue(any(event["ph"] == "f" and event["id"] == start["id"] for event in events))

    def test_one_seed_one_output(self):
        for out in ("first", "second"):
            self.succeed("run", "squeezenet1_1", "--no-gpu", "--lane", "cpu0", "--seed", "5", "--output-dir", out)
        first, second = ({path.name: path.read_bytes() for path in (self.folder / out).iterdir()} for out in ("first", "second"))
        self.assertTrue(first)
        self.assertEqual(first, second)


class Bench(tool.ToolTest):
    FIELDS = ["name", "model", "contender", "median_us", "ci95_us", "p90_us", "p99_us", "runs", "inferences", "predicted_us", "max_rel_error", "lanes_used",
              "reference_fallbacks"]

    def test_json(self):
        report = json.loads(self.succeed("bench", "squeezenet1_1", "--rounds", "3", "--no-tune", "--json", "-"))
        self.assertIn("date", report["context"])
        rows = {row["contender"]: row for row in report["benchmarks"]}
        self.assertIn("lane:cpu0", rows)
        self.assertIn("plan", rows)
        for contender, row in rows.items():
            with self.subTest(contender):
                self.assertEqual([field for field in self.FIELDS if field not in row], [])
                self.assertEqual(row["name"], f"squeezenet1_1/{contender}")
                self.assertEqual(row["runs"], 3)
                self.assertGreaterEqual(row["inferences"], 3)
                low, high = row["ci95_us"]
                self.assertTrue(0 < low <= row["median_us"] <= high)
                self.assertLessEqual(row["median_us"], row["p99_us"])
                self.assertLessEqual(row["max_rel_error"], 1e-4)
                self.assertGreaterEqual(row["lanes_used"], 1)

    def test_compare(self):
        report = json.loads(self.succeed("bench", "squeezenet1_1", "--rounds", "3", "--round-ms", "0", "--no-tune", "--compare", "split,heft", "--json", "-"))
        rows = {row["contender"]: row for row in report["benchmarks"]}
        for strategy in ("split", "heft"):
            self.assertEqual(rows[f"plan:{strategy}"]["inferences"], 3)
            self.assertGreater(rows["plan"]["speedup_over"][f"plan:{strategy}"]["median"], 0)

    def test_compare_names_the_strategies(self):
        done = self.plait("bench", "squeezenet1_1", "--compare", "greedy")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("heft-split", done.stderr)


if __name__ == "__main__":
    tool.main()
