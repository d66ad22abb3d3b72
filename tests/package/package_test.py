#!/usr/bin/env python3
"""Plait as others get it: installs a build and uses what was installed, by CMake, by pkg-config and as a subdirectory.

usage: package_test.py SOURCE_DIR BUILD_DIR
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path()
BUILD = pathlib.Path()


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def cache(build, name):
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found.group(1) if found else None


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="plait_package_"))
        cls.prefix = cls.folder / "prefix"
        for component in ("library", "development"):
            run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
        cls.libdir = next(cls.prefix.rglob("plait.pc")).parent.parent
        cls.environment = dict(os.environ, LD_LIBRARY_PATH=str(cls.libdir))
        cls.model = SOURCE / "examples" / "model.json"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_exports_the_listed_symbols_only(self):
        exported = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", self.libdir / "libplait.so").splitlines()}
        listed = set((SOURCE / "tests" / "package" / "symbols.txt").read_text().split())
        self.assertEqual(exported, listed, "a change of the exported symbols is a change of the ABI: tests/package/symbols.txt")

    def test_every_symbol_is_declared_and_every_declaration_exported(self):
        declared = set()
        for header in ("plait.h", "strategy.h"):
            declared |= set(re.findall(r"^PLAIT_API [\w\s*]*?\b(plait_\w+)\(", (SOURCE / "include" / "plait" / header).read_text(), re.M))
        self.assertEqual(declared, set((SOURCE / "tests" / "package" / "symbols.txt").read_text().split()))

    def test_has_a_versioned_name_and_loads_without_opencl(self):
        dynamic = run("readelf", "-d", self.libdir / "libplait.so")
        self.assertIn("[libplait.so.0]", dynamic)
        self.assertNotIn("OpenCL", dynamic)

    def test_cmake_project_outside(self):
        build = self.folder / "examples"
        run("cmake", "-S", SOURCE / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release")
        self.assertTrue(cache(build, "plait_DIR").startswith(str(self.prefix)))
        run("cmake", "--build", build)
        for example in ("example_hello_c", "example_custom_strategy_cpp"):
            self.assertTrue(run(build / example, self.model, env=self.environment))

    @unittest.skipUnless(shutil.which("pkg-config") and shutil.which("make"), "no make or pkg-config here")
    def test_makefile_project_with_pkg_config(self):
        project = self.folder / "make"
        project.mkdir()
        shutil.copy(SOURCE / "examples" / "hello.c", project)
        (project / "Makefile").write_text("hello: hello.c\n\t$(CC) -std=c99 $$(pkg-config --cflags plait) $< -o $@ $$(pkg-config --libs plait)\n")
        run("make", "-C", project, env=dict(self.environment, PKG_CONFIG_PATH=str(self.libdir / "pkgconfig")))
        self.assertIn("probabilities:", run(project / "hello", self.model, env=self.environment))

    def test_headers_compile_alone_as_c_and_cpp(self):
        for compiler, language, headers in (("cc", "-std=c99", ("plait.h", "strategy.h")), ("c++", "-std=c++20", ("plait.h", "strategy.h", "plait.hpp", "result.hpp"))):
            for header in headers:
                source = self.folder / ("alone.c" if compiler == "cc" else "alone.cpp")
                source.write_text(f"#include <plait/{header}>\nint main(void) {{ return 0; }}\n")
                run(compiler, language, "-Wall", "-Wextra", "-Werror", "-pedantic-errors", f"-I{self.prefix / 'include'}", "-fsyntax-only", source)

    def test_subdirectory_of_another_project(self):
        project = self.folder / "parent"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(parent LANGUAGES C CXX)\n"
            f"add_subdirectory({SOURCE} plait)\nadd_executable(parent main.c)\ntarget_link_libraries(parent PRIVATE plait::plait)\n")
        (project / "main.c").write_text("#include <plait/plait.h>\nint main(void) { return plait_abi_version() != PLAIT_ABI_VERSION; }\n")
        build = self.folder / "parent_build"
        run("cmake", "-S", project, "-B", build, *(f"-D{name}={cache(BUILD, name)}" for name in ("PLAIT_XNNPACK", "PLAIT_OPENCL", "PLAIT_ONNX")))
        for option in ("PLAIT_TESTS", "PLAIT_TOOL", "PLAIT_EXAMPLES", "PLAIT_INSTALL"):
            self.assertEqual(cache(build, option), "OFF", option)
        targets = run("cmake", "--build", build, "--target", "help")
        self.assertIn("parent", targets)
        self.assertNotIn("_test", targets)
        self.assertNotIn("plait_tool", targets)

    def test_fetched_by_another_project(self):
        project = self.folder / "fetching"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(fetching LANGUAGES C CXX)\ninclude(FetchContent)\n"
            f"FetchContent_Declare(plait SOURCE_DIR {SOURCE})\nFetchContent_MakeAvailable(plait)\n"
            "add_executable(fetching main.c)\ntarget_link_libraries(fetching PRIVATE plait::plait)\n")
        (project / "main.c").write_text("#include <plait/plait.h>\nint main(void) { return plait_abi_version() != PLAIT_ABI_VERSION; }\n")
        build = self.folder / "fetching_build"
        run("cmake", "-S", project, "-B", build, "-DPLAIT_XNNPACK=OFF", "-DPLAIT_OPENCL=OFF", "-DPLAIT_ONNX=OFF")
        self.assertEqual(cache(build, "PLAIT_TESTS"), "OFF")

    def test_wheel_in_a_clean_environment(self):
        venv = self.folder / "venv"
        run(sys.executable, "-m", "venv", venv)
        python = venv / "bin" / "python"
        download = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "numpy", "scikit-build-core>=0.10"]
        if subprocess.run([str(c) for c in download], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300).returncode != 0:
            self.skipTest("pip cannot fetch numpy and scikit-build-core here")
        source = self.folder / "python"
        shutil.copytree(SOURCE / "python", source)
        run(python, "-m", "pip", "install", "-q", "--no-build-isolation", "-C", f"cmake.define.CMAKE_PREFIX_PATH={self.prefix}", source)
        environment = {name: value for name, value in os.environ.items() if name not in ("PLAIT_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH")}
        script = ("import sys, numpy, plait; model = plait.load(sys.argv[1]); lanes = plait.Lanes(gpu=False)\n"
                  "outputs = model.plan(lanes, strategy='lane:cpu0').run(numpy.zeros(model.inputs[0].shape, 'float32'))\n"
                  "print(plait._c.library._name, {name: value.shape for name, value in outputs.items()})")
        printed = run(python, "-c", script, self.model, env=environment, cwd=self.folder)
        self.assertIn(str(venv), printed, "the library is the wheel's own")
        self.assertIn("probabilities", printed)

    @unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("cpack"), "no Debian tools here")
    def test_debian_package(self):
        where = self.folder / "deb"
        run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", where)
        (package,) = where.glob("*.deb")
        content = run("dpkg-deb", "-c", package)
        for name in ("/libplait.so.0", "/include/plait/plait.h", "/plaitConfig.cmake", "/plait.pc"):
            self.assertIn(name, content)
        self.assertNotIn("_test", content)
        self.assertEqual(run("dpkg-deb", "-f", package, "Package").strip(), "plait")


if __name__ == "__main__":
    SOURCE, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
