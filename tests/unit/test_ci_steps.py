"""The scripts of .ci: steps whose tests are counted, limits on CPU time, nights that go on where they were cut off."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
CPU = '<properties><property name="cpu_s" value="{}"/></properties>'
CASES = {
    "light": CPU.format(0.5),
    "heavy": CPU.format(2.5),
    "wrong": '<failure message="assert 1 == 2"/>',
    "broken": '<error message="fixture"/>',
    "elsewhere": '<skipped message="this kernel has no gre"/>',
    "missing": '<skipped message="openvpn not installed"/>',
}


@pytest.fixture(scope="module")
def ci() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ci_steps", ROOT / ".ci" / "steps.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci_steps"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def runner_of(ci: ModuleType, folder: Path, commit: str = "abc"):  # type: ignore[no-untyped-def]
    return ci.Runner(folder, commit, {})


def test_the_readmes_commands_are_steps(ci: ModuleType) -> None:
    install, lint, unit, *rest = ci.readme_steps()
    assert "pip install" in install.command and "mypy" in lint.command and unit.command.endswith("tests/unit")
    assert install.vital and lint.vital and not unit.vital
    assert "'click >= " in ci.required() and "'hypothesis >= " in ci.required() and "trexbench" not in ci.required()
    folders = " ".join(step.command for step in (unit, *rest)).split()
    tested = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if list(path.glob("test_*.py"))}
    assert tested - set(folders) == {"tests/truth"}, "every folder of tests is a step's, or a night's"


def test_tests_are_counted_and_what_is_wrong_is_named(ci: ModuleType, tmp_path: Path) -> None:
    cases = (f'<testcase classname="tests.unit.test_a" name="{name}">{body}</testcase>' for name, body in CASES.items())
    (tmp_path / "x.xml").write_text(f"<testsuite>{''.join(cases)}</testsuite>")
    outcome = ci.Outcome("abc", 1.0, 1)
    ci.read_tests(tmp_path / "x.xml", outcome, (2.0, 2.9), installed=True)
    assert (outcome.passed, outcome.skipped, outcome.cpu_s) == (2, 2, 3.0)
    assert outcome.failures == [
        "tests/unit/test_a.py::wrong",
        "tests/unit/test_a.py::broken",
        "tests/unit/test_a.py::missing was skipped: openvpn not installed",
        "tests/unit/test_a.py::heavy takes 2.5 s of CPU",
        "these tests take 3 s of CPU; 3 s are allowed",
    ]


@pytest.mark.parametrize(("share", "failures"), ((0.5, 1), (1.0, 1), (1.5, 0)))
def test_a_slow_machine_is_allowed_more_cpu_time(ci: ModuleType, tmp_path: Path, share: float, failures: int) -> None:
    reference = f'<property name="reference_s" value="{ci.REFERENCE_S * share}"/></properties>'
    noted = CPU.format(2.5).replace("</properties>", reference)
    (tmp_path / "x.xml").write_text(f'<testsuite><testcase classname="a" name="b">{noted}</testcase></testsuite>')
    outcome = ci.Outcome("abc", 1.0, 0)
    ci.read_tests(tmp_path / "x.xml", outcome, (2.0, 3.0), installed=True)
    assert len(outcome.failures) == failures


def test_a_step_runs_a_shell_command_and_keeps_what_it_prints(ci: ModuleType, tmp_path: Path) -> None:
    runner = runner_of(ci, tmp_path)
    assert runner.go(ci.Step("both", "echo first && echo second >&2")).good
    assert (tmp_path / "both.log").read_text() == "first\nsecond\n"
    wrong = runner.go(ci.Step("wrong", "exit 3"))
    assert not wrong.good and wrong.code == 3
    with pytest.raises(ci.Stopped):
        runner.go(ci.Step("vital", "false", vital=True))
    printed = ci.table(runner.outcomes, "abc")
    assert [line.split()[0] for line in printed.splitlines()[1:4]] == ["both", "wrong", "vital"]
    assert "exit code 3" in printed and printed.endswith("0 passed, 2 failed, 0 skipped")


def test_a_night_goes_on_where_it_was_cut_off(ci: ModuleType, tmp_path: Path) -> None:
    """Each step appends its name to a file, so that the file says what was run."""
    ran, state = tmp_path / "ran", tmp_path / "night.json"
    names = ("first", "second", "third")
    steps = [ci.Step(name, f"echo {name} >> {ran}") for name in names]

    def night(commit: str, only: str | None = None, keep: bool = False, upto: int = 3) -> list[str]:
        ran.write_text("")
        runner = runner_of(ci, tmp_path, commit)
        ci.night(runner, steps[:upto], state, only, keep)
        assert list(runner.outcomes) == [name for name in names[:upto] if name in runner.outcomes]
        return ran.read_text().split()

    assert night("abc", upto=2) == ["first", "second"]
    assert night("abc") == ["third"]
    assert night("abc", only="second") == ["second"]
    assert night("def", keep=True) == []
    assert night("def", only="third") == ["third"]
    assert night("def") == ["first", "second"], "the steps of another commit"
    assert night("def+") == list(names), "files differ from the commit: nobody knows how"
    assert night("def+") == list(names)


def test_a_step_that_does_not_exist_is_refused_by_name(ci: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ci.main(["nightly", "--only", "untis"])
    printed = capsys.readouterr().err
    assert ended.value.code == 2 and "no step 'untis': there are Debian's packages, install, lint and types" in printed
