"""Run the steps of .ci/run or .ci/nightly one after the other, and print a table of them.

    bash .ci/run
    bash .ci/nightly [--keep] [--afresh] [--only NAME]

The steps' commands are those of README.md's "Test it" and the few below. What each prints is shown and kept in
.ci/logs/, with the slowest tests. A night that was cut off goes on where it ended; steps of another commit are run
again, unless --keep accepts them: the table then says of which commit they are.
"""

from __future__ import annotations

import argparse
import configparser
import json
import math
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / ".ci" / "logs"
NIGHT = ROOT / ".ci" / "night.json"
RATIOS = "benchmarks/ratios.json"
PORTABLE = ("3.10",)
PYTHONS = ("3.10", "3.12", "3.13")
"""Besides the machine's own."""
UNIT_CPU_S = (2.0, 180.0)
"""CPU time allowed to one unit test, and to all, in .ci/run, on a machine that needs REFERENCE_S for the reference."""
REFERENCE_S = 0.0008
"""CPU time of ``reference_s()`` in tests/conftest.py where the limits were set; a slower machine is allowed more."""
MISSING = (
    "needs root",
    "not installed",
    "no chromium",
    "no firefox",
    "no WebKitWebDriver",
    "no iperf3",
    "needs ip ",
    "needs pip ",
)
"""Reasons that no test may skip for where this script installs what it needs."""
PACKAGES = {
    "ip": "iproute2", "ping": "iputils-ping", "ethtool": "ethtool", "ssh": "openssh-client", "sshd": "openssh-server",
    "chromium": "chromium", "iperf3": "iperf3", "nft": "nftables", "iptables": "iptables", "openvpn": "openvpn",
    "wireguard-go": "wireguard-go", "wg": "wireguard-tools", "openssl": "openssl",
    "pppd": "ppp", "pppoe-server": "pppoe", "tcsh": "tcsh", "zsh": "zsh", "fish": "fish", "trafgen": "netsniff-ng",
}  # fmt: skip
"""Program -> Debian's package."""
LEAN = {
    "qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox", "depmod": "kmod", "cpio": "cpio",
    "qemu-img": "qemu-utils", "syslinux": "syslinux", "mcopy": "mtools", "mkfs.vfat": "dosfstools",
    "dropbear": "dropbear-bin",
}  # fmt: skip
"""The same, without the packages that these recommend: of QEMU 43 MB instead of 293."""
BROWSERS = {"firefox-esr": "firefox-esr", "WebKitWebDriver": "webkit2gtk-driver", "Xvfb": "xvfb"}
"""The same, for tests that only a night has."""


@dataclass(frozen=True)
class Step:
    """A named shell command of the checkout. vital: nothing after it makes sense if it fails.

    extra_workers: as its tests wait for clocks, there is room for so many processes more than there are cores;
    most_cpu_s: CPU time allowed to one of its tests, and to all together.
    """

    name: str
    command: str
    vital: bool = False
    extra_workers: int = 0
    most_cpu_s: tuple[float, float] = (math.inf, math.inf)


class Stopped(Exception):
    """A vital step failed."""


@dataclass
class Outcome:
    """The result of a step. reference_s: what the tests' reference took; failures: ids of tests, or sentences."""

    commit: str
    seconds: float
    code: int
    passed: int = 0
    skipped: int = 0
    cpu_s: float = 0.0
    reference_s: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.code == 0 and not self.failures


def readme_steps() -> list[Step]:
    """The commands of README's "Test it", in its order."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Test it\n")[1].split("\n## ")[0]
    commands = section.split("```sh\n")[1].split("\n```")[0].splitlines()
    named = (
        ("install", True, 0),
        ("lint and types", True, 0),
        ("unit", False, 1),
        ("commands and page", False, 2),
        ("root, side by side", False, 1),
        ("root, measuring", False, 0),
    )
    assert len(named) == len(commands), "README's 'Test it' has other commands than .ci/steps.py has names"
    return [Step(name, line, vital, extra) for (name, vital, extra), line in zip(named, commands, strict=True)]


def python_of(version: str) -> str | None:
    """A Python of this version, if there is one; pyenv keeps several beside the default one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for candidate in (shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python3"))):
        if candidate and subprocess.run([candidate, "-c", "import venv"], capture_output=True).returncode == 0:
            return candidate
    return None


def install_python(version: str, packages: str) -> str:
    """The command that makes .venv-VERSION with what pip is to install there, or says what is missing, and fails."""
    if (python := python_of(version)) is None:
        return f"echo 'no Python {version} here, nor in pyenv: install python{version} and python{version}-venv'; false"
    return f"{python} -m venv --upgrade-deps .venv-{version} && .venv-{version}/bin/pip install -q {packages}"


def required(extra: str = "test") -> str:
    """The requirements of this extra, without trexbench: two installations of a checkout spoil each other."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    named = config["options"]["install_requires"] + config["options.extras_require"][extra]
    return shlex.join(filter(None, named.splitlines()))


def install_packages(packages: Mapping[str, str] = PACKAGES) -> str:
    """The command that installs Debian's packages whose programs are missing; as another user than root nothing."""
    commands = ["apt-get update -qq"]
    for option, some in (("", packages), ("--no-install-recommends ", LEAN)):
        if missing := [package for program, package in some.items() if shutil.which(program) is None]:
            words = f"{option}{' '.join(missing)}"
            commands.append(f"DEBIAN_FRONTEND=noninteractive apt-get install -y -qq {words} >/dev/null")
    return " && ".join(commands) if os.geteuid() == 0 and len(commands) > 1 else "true"


def start(command: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A shell command in a process group of its own, with standard output and error in one pipe."""
    return subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    """Ctrl-C for its group, so that tests take away what they made; then kill."""
    for number, within_s in ((signal.SIGINT, 30), (signal.SIGKILL, 5)):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(within_s)
            except subprocess.TimeoutExpired:
                continue


@contextmanager
def beside(installation: str) -> Iterator[None]:
    """Run this command while the block's steps run, and wait for its end: an installation cut off spoils the next."""
    process = start(installation, {})
    try:
        yield
    finally:
        printed, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{printed}\nexit code {process.returncode}: {installation}")


@dataclass
class Runner:
    """Runs steps on one commit. logs: the folder of what they print; outcomes: by name, in their order."""

    logs: Path
    commit: str
    environment: dict[str, str]
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def go(self, step: Step) -> Outcome:
        """Run a step, show and keep what it prints, and read the results of its tests."""
        print(f"\n== {step.name}\n{step.command}", flush=True)
        file = re.sub(r"\W+", "-", step.name)
        results = self.logs / f"{file}.xml"
        results.unlink(missing_ok=True)
        options = f"--junitxml={shlex.quote(str(results))} --durations=30 --durations-min=0.5"
        begun_s = time.monotonic()
        workers = str((os.cpu_count() or 1) + step.extra_workers)
        added = {"PYTEST_ADDOPTS": options, "PYTEST_XDIST_AUTO_NUM_WORKERS": workers}
        process = start(step.command, {**self.environment, **added})
        assert process.stdout is not None
        try:
            with open(self.logs / f"{file}.log", "w", buffering=1, encoding="utf-8") as log:
                for line in process.stdout:
                    print(line, end="", flush=True)
                    log.write(line)
            code = process.wait()
        finally:
            end(process)
        outcome = Outcome(self.commit, round(time.monotonic() - begun_s, 1), code)
        self.outcomes[step.name] = outcome
        if results.exists():
            read_tests(results, outcome, step.most_cpu_s, installed=os.geteuid() == 0)
        if step.vital and not outcome.good:
            raise Stopped
        return outcome


def read_tests(results: Path, outcome: Outcome, most_cpu_s: tuple[float, float], installed: bool) -> None:
    """Count the tests of a junitxml file; name those that failed, were skipped for want of a program, or cost too much.

    most_cpu_s: CPU time allowed to one test, and to all together; installed: no program is missing.
    """
    spent_s = dict[str, float]()
    references_s = list[float]()
    for case in ElementTree.parse(results).iter("testcase"):
        name, skip = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}", case.find("skipped")
        noted = {note.get("name"): note.get("value", "") for note in case.iter("property")}
        spent_s[name] = float(noted.get("cpu_s", 0))
        references_s += [float(noted["reference_s"])] if "reference_s" in noted else []
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failures.append(name)
        elif skip is None:
            outcome.passed += 1
        else:
            outcome.skipped += 1
            if installed and any(reason in (skip.get("message") or "") for reason in MISSING):
                outcome.failures.append(f"{name} was skipped: {skip.get('message')}")
    outcome.reference_s = statistics.median(references_s or [0.0])
    each, together = (limit_s * max(1.0, outcome.reference_s / REFERENCE_S) for limit_s in most_cpu_s)
    outcome.failures += [f"{name} takes {cpu_s:.1f} s of CPU" for name, cpu_s in spent_s.items() if cpu_s > each]
    outcome.cpu_s = round(sum(spent_s.values()), 1)
    if outcome.cpu_s > together:
        outcome.failures.append(f"these tests take {outcome.cpu_s:.0f} s of CPU; {together:.0f} s are allowed")


def table(outcomes: dict[str, Outcome], commit: str) -> str:
    """The steps with their tests, times and failures."""
    lines = [f"{'step':28}{'passed':>8}{'failed':>8}{'skipped':>8}{'CPU s':>8}{'min:s':>8}"]
    for name, done in outcomes.items():
        counts = f"{done.passed:8}{len(done.failures):8}{done.skipped:8}{done.cpu_s:8.0f}"
        minutes, seconds = divmod(round(done.seconds), 60)
        ended = f"  exit code {done.code}" if done.code else ""
        ended += "" if done.commit == commit else f"  of commit {done.commit[:8]}"
        lines.append(f"{name:28}{counts}{f'{minutes}:{seconds:02}':>8}{ended}")
        lines += [f"    {failure}" for failure in done.failures]
    done_steps = outcomes.values()
    passed, skipped = sum(done.passed for done in done_steps), sum(done.skipped for done in done_steps)
    failed = sum(max(len(done.failures), 0 if done.good else 1) for done in done_steps)
    reference_s = max((done.reference_s for done in done_steps), default=0.0)
    lines += ["", f"the reference took {reference_s * 1e3:.2f} ms of CPU; limits are for {REFERENCE_S * 1e3:.2f} ms"]
    lines += [f"in all {sum(done.seconds for done in done_steps) / 60:.1f} minutes"]
    lines.append(f"{passed} passed, {failed} failed, {skipped} skipped")
    return "\n".join(lines)


def commit_of_checkout() -> str:
    """The commit, with a plus sign if files differ from it; the ratios that a night writes do not count."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "HEAD") + "+" * bool(git("status", "--porcelain", "--", ".", f":!{RATIOS}"))


def run(runner: Runner) -> None:
    """Judge the checkout in a quarter of an hour."""
    install, lint, unit, *rest = readme_steps()
    # Only files with such tests: importing the others takes as long as the tests.
    files = [path for path in sorted(ROOT.glob("tests/unit/test_*.py")) if "mark.portable" in path.read_text("utf-8")]
    portable = f"-m portable {' '.join(str(path.relative_to(ROOT)) for path in files)}"
    # What tests import is compiled where they are collected first; otherwise each worker would do it, all at once.
    collect = "{}/bin/pytest -q --collect-only {} || true"
    with beside(" && ".join((install_packages(), *(install_python(one, required()) for one in PORTABLE)))):
        runner.go(install)
        commands = ".venv/bin/python tests/helpers/preload.py || true"  # with none to run it imports all that they do
        with beside(f"{collect.format('.venv', 'tests --ignore=tests/root')}; {commands}"):  # root's have namesakes
            runner.go(lint)
    checkout = ".venv-{0}/bin/pip install -q -e . && {{ {1}; }}"
    ready = (checkout.format(one, collect.format(f".venv-{one}", portable)) for one in PORTABLE)
    with beside(" && ".join(ready)):
        runner.go(replace(unit, most_cpu_s=UNIT_CPU_S))
    for version in PORTABLE:
        command = f".venv-{version}/bin/pytest -n auto {portable}"
        runner.go(Step(f"portable, Python {version}", command, extra_workers=1))
    for step in rest:
        runner.go(step)


def nightly_steps() -> list[Step]:
    """All there is: README's commands, experiments, unit tests on every Python, benchmarks."""
    install, lint, unit, *rest = readme_steps()
    steps = [Step("Debian's packages", install_packages(PACKAGES | BROWSERS), vital=True), install, lint, unit]
    for version in PYTHONS:
        steps.append(Step(f"install, Python {version}", install_python(version, "-e '.[test,store]'"), vital=True))
        # What an experiment finds does not depend on the Python: a sample of each is enough there.
        command = f"TREXBENCH_NIGHTLY= .venv-{version}/bin/pytest -n auto tests/unit"
        steps.append(Step(f"unit, Python {version}", command, extra_workers=1))
    # At night these tests are longer, and some load the machine: with more of them than cores, packets come too late.
    rest = [replace(step, extra_workers=0) if "root" in step.name else step for step in rest]
    steps += [Step("truth", ".venv/bin/pytest -n auto tests/truth"), *rest]
    return [*steps, Step("benchmarks", ".venv/bin/python benchmarks/nightly.py --keep")]


def night(runner: Runner, steps: Sequence[Step], state: Path, only: str | None, keep: bool) -> None:
    """Run the steps that have no outcome yet, and store each outcome at once, unless it stops the night.

    only: the step to run, again or for the first time; keep: outcomes of other commits stay, too.
    """
    stored = json.loads(state.read_text()) if state.exists() else {}
    before = {name: Outcome(**values) for name, values in stored.items()}
    for step in steps:
        known = before.get(step.name)
        stands = known is not None and (keep or (known.commit == runner.commit and runner.commit[-1] != "+"))
        if step.name == only or not (only or stands):
            before[step.name] = runner.go(step)
            beside_it = state.with_suffix(".new")
            beside_it.write_text(json.dumps({name: asdict(outcome) for name, outcome in before.items()}, indent=1))
            beside_it.replace(state)
        elif known is not None:
            runner.outcomes[step.name] = known


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=".ci/steps.py", description=__doc__.partition("\n")[0])
    scripts = parser.add_subparsers(dest="script", required=True)
    scripts.add_parser("run", help="judge the checkout")
    nightly = scripts.add_parser("nightly", help="run everything")
    nightly.add_argument("--afresh", action="store_true", help="forget what the last night has run")
    nightly.add_argument("--keep", action="store_true", help="accept steps that were run on another commit")
    nightly.add_argument("--only", metavar="NAME", help="run this step (again), and no other")
    asked = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore Ctrl-C
        signal.signal(number, signal.default_int_handler)
    LOGS.mkdir(exist_ok=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it each process compiles anew what it imports
    os.environ["PIP_COMPILE"] = "0"  # pip compiles what it has installed on one core, which takes a third of its time
    effort = "TREXBENCH_CI" if asked.script == "run" else "TREXBENCH_NIGHTLY"
    runner = Runner(LOGS, commit_of_checkout(), {effort: "1"})
    steps = nightly_steps() if asked.script == "nightly" else []
    names = [step.name for step in steps]
    if steps and asked.only not in (None, *names):
        nightly.error(f"no step {asked.only!r}: there are {', '.join(names)}")
    stopped = False
    try:
        if asked.script == "run":
            run(runner)
        else:
            if asked.afresh:
                NIGHT.unlink(missing_ok=True)
            night(runner, steps, NIGHT, asked.only, asked.keep)
    except (Stopped, KeyboardInterrupt):
        stopped = True
    print(f"\n{table(runner.outcomes, runner.commit)}")
    if left := [name for name in names if name not in runner.outcomes]:
        print(f"not run yet: {', '.join(left)}")
    return int(stopped or bool(left) or not all(outcome.good for outcome in runner.outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
