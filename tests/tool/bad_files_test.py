#!/usr/bin/env python3
"""A file that is no model, or not a whole one: the tool says which file, what is wrong and what to do, and ends with exit code 1.
   bad_files_test.py PLAIT"""
import gzip
import os
import random

import tool


class BadModels(tool.ToolTest):
    def check(self, path, *says):
        self.refuse(["run", path, "--no-gpu", "--quiet"], path, *says)

    def test_missing(self):
        self.check(self.folder / "missing.onnx", "no such file", "check the path")

    def test_no_file_and_no_zoo_name(self):
        self.refuse(["run", "resnet51"], "resnet51", "no such file", "the zoo", "resnet50")

    def test_empty(self):
        self.check(self.write("empty.onnx", b""), "is empty", "again")

    def test_directory(self):
        self.check(self.folder, "is a directory", "name the model file")

    def test_other_formats(self):
        for name, content, says in [
            ("model.onnx.gz", gzip.compress(b"\x08\x08" * 100), ("gzip", "unpack")),
            ("zip.onnx", b"PK\x03\x04" + bytes(60), ("zip", "torch.onnx.export")),
            ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(64), ("PNG", "ONNX")),
            ("model.tflite", b"\x1c\0\0\0TFL3" + bytes(64), ("TensorFlow Lite", "convert")),
            ("read.me", b"This is not a model.\n" * 20, ("text file", "ONNX")),
            ("utf16.json", "{}".encode("utf-16"), ("UTF-16", "UTF-8")),
            ("array.npy", b"\x93NUMPY\x01\x00" + bytes(64), ("NumPy", "input")),
            ("zeros.onnx", bytes(4096), ("ONNX",)),
            ("page.onnx", b"<!DOCTYPE html><html>404</html>", ("text file",)),
        ]:
            with self.subTest(name):
                self.check(self.write(name, content), *says)

    def test_few_bytes(self):
        for content in (b"\0", b"\x08", b"\x08\x08", b"{", b"{}", b"[]", b"TFL3", b"\x1c\0\0\0TFL3", b"\xff" * 7):
            with self.subTest(content):
                self.check(self.write("few.bytes", content))

    def test_no_regular_file(self):
        os.mkfifo(self.folder / "pipe.onnx")
        self.check(self.folder / "pipe.onnx", "regular file")
        self.check("/dev/zero", "regular file")

    def test_random_bytes(self):
        for seed in range(3):
            with self.subTest(seed):
                self.check(self.write("random.onnx", random.Random(seed).randbytes(5000)), "no model that is known")

    def test_truncated(self):
        for name, says in (("whole.onnx", "export the model again"), ("whole.json", "again")):
            self.succeed("export", "squeezenet1_1", "-o", name)
            content = (self.folder / name).read_bytes()
            for kept in (len(content) - 2, len(content) // 2, len(content) // 3, 1000, 100, 3):
                with self.subTest(name=name, kept=kept):
                    self.check(self.write("cut_" + name, content[:kept]), says)

    def test_weights_beside(self):
        self.succeed("export", "squeezenet1_1", "-o", "whole.json")
        weights = self.folder / "whole.json.weights"
        content = weights.read_bytes()
        for kept in (len(content) - 1, len(content) // 2, 0):
            with self.subTest(kept):
                weights.write_bytes(content[:kept])
                self.check(self.folder / "whole.json", "whole.json.weights", kept, len(content), "again")
        weights.write_bytes(content[:100] + b"\xff" + content[101:])
        self.check(self.folder / "whole.json", "whole.json.weights", "checksum", "again")
        weights.unlink()
        self.check(self.folder / "whole.json", "whole.json.weights", "no such file", "copy it")
        weights.mkdir()
        self.check(self.folder / "whole.json", "whole.json.weights", "regular file")

    def test_bytes_lost_inside(self):
        self.succeed("export", "squeezenet1_1", "-o", "whole.onnx")
        content = (self.folder / "whole.onnx").read_bytes()
        self.check(self.write("holed.onnx", content[:2000] + content[2100:]))

    def test_operator_that_is_lacking(self):
        self.check(self.write("lacking.onnx", tool.onnx_model("NonMaxSuppression")), "NonMaxSuppression", "the_operator", "without these")

    def test_dtypes_that_are_lacking(self):
        for name, dtype in (("float16", tool.FLOAT16), ("double", tool.DOUBLE), ("int64", tool.INT64), ("99", 99)):
            with self.subTest(name):
                self.check(self.write("dtype.onnx", tool.onnx_model("Relu", dtype=dtype)), name, "float32", "export")

    def test_shapes_that_are_open(self):
        path = self.write("open.onnx", tool.onnx_model("Relu", shape=("batch", 4)))
        self.check(path, "'x'", "dimension 0", "batch", "--shape")
        self.succeed("run", path, "--no-gpu", "--lane", "cpu0", "--shape", "x=1x4")
        self.refuse(["run", path, "--no-gpu", "--lane", "cpu0", "--shape", "x=1x5"], path, "contradicts")

    def test_sizes_that_no_machine_has(self):
        self.check(self.write("huge.onnx", tool.onnx_model("Relu", shape=(1 << 30, 1 << 30))), "'x'", "2^40 bytes")
        self.check(self.write("huge.onnx", tool.onnx_model("Relu", shape=(1 << 62, 4))), "'x'", "axis 0")

    def test_every_command_that_reads_a_model(self):
        path = self.write("text.onnx", b"no model")
        for command in (["inspect"], ["plan"], ["run"], ["bench"], ["export", "-o", "out.onnx"]):
            with self.subTest(command[0]):
                self.refuse([command[0], path, *command[1:]], path, "text file")
        self.assertFalse((self.folder / "out.onnx").exists())


class BadCompanions(tool.ToolTest):
    """Inputs, plans and folders that are given together with a good model."""

    def setUp(self):
        super().setUp()
        self.model = self.write("relu.onnx", tool.onnx_model("Relu"))

    def run_with(self, *arguments):
        return ["run", self.model, "--no-gpu", "--quiet", "--lane", "cpu0", *arguments]

    def test_inputs(self):
        good = tool.write_npy(self.folder / "good.npy", [1, 4], [1, -1, 2, -2])
        self.refuse(self.run_with("--input", f"z={good}"), "z", "no such input", "x")
        self.refuse(self.run_with("--input", "x"), "NAME=FILE.npy")
        self.refuse(self.run_with("--input", "x=missing.npy"), "missing.npy", "no such file")
        self.refuse(self.run_with("--input", f"x={good}", "--input", f"x={good}"), "twice")
        other = tool.write_npy(self.folder / "other.npy", [1, 5], [0] * 5)
        self.refuse(self.run_with("--input", f"x={other}"), "other.npy", "1x4", "1x5")
        double = tool.write_npy(self.folder / "double.npy", [1, 2], [0] * 4, descr="<f8")
        self.refuse(self.run_with("--input", f"x={double}"), "double.npy", "float32")
        cut = self.write("cut.npy", good.read_bytes()[:-1])
        self.refuse(self.run_with("--input", f"x={cut}"), "cut.npy")
        self.refuse(self.run_with("--input", f"x={self.model}"), self.model)

    def test_plans(self):
        self.succeed("plan", self.model, "--no-gpu", "--no-tune", "--quiet", "-o", "good.plan.json")
        good = (self.folder / "good.plan.json").read_bytes()
        for name, content in [("empty", b""), ("text", b"no plan"), ("cut", good[: len(good) // 2]), ("object", b"{}")]:
            with self.subTest(name):
                path = self.write(name + ".plan.json", content)
                self.refuse(["run", self.model, "--no-gpu", "--plan", path], path)
        other = self.write("other.onnx", tool.onnx_model("Sigmoid"))
        self.refuse(["run", other, "--no-gpu", "--plan", "good.plan.json"], "good.plan.json", "another")

    def test_output_folder(self):
        self.refuse(self.run_with("--output-dir", self.model / "out"), self.model / "out")

    def test_exported_name(self):
        self.refuse(["export", self.model, "-o", "model.tflite"], "model.tflite", ".onnx")
        self.refuse(["export", self.model, "-o", "nowhere/model.onnx"], "nowhere/model.onnx")


if __name__ == "__main__":
    tool.main()
