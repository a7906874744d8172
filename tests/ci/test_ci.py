"""What CI systems read: hooks, the action and the example workflows. Their shell steps run as they would there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.forked import program

yaml = pytest.importorskip("yaml")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are for bash")

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
EXAMPLES = ROOT / "examples" / "ci"

# Stands in for a Python: makes environments of nothing, takes note of what it installs, and has reducelower ready.
PYTHON = """#!/bin/sh
case "$*" in
  "-m venv "*) for last; do :; done; mkdir -p "$last/bin" && cp "$0" "$last/bin/python" ;;
  "-m pip install "*) for last; do :; done; echo "$last" >> {installed} ;;
  "-m reducelower "*) shift 2; exec {reducelower} "$@" ;;
  *) exec {python} "$@" ;;
esac
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A checkout with a model at opset 18 and one at 21, and what a runner has."""
    place = tmp_path / "workspace"
    (place / "models").mkdir(parents=True)
    for name in ("mean_18.onnx", "branches_21.onnx"):
        shutil.copy(ROOT / "examples" / "models" / name, place / "models")
    programs = tmp_path / "bin"
    programs.mkdir()
    python = PYTHON.format(
        installed=tmp_path / "installed", python=shlex.quote(sys.executable), reducelower=programs / "reducelower"
    )
    (programs / "python3").write_text(python)
    (programs / "python3").chmod(0o755)
    program(programs / "reducelower")
    (tmp_path / "temp").mkdir()
    return place


def opsets(folder: Path) -> dict[str, int]:
    return {
        path.name: next(entry.version for entry in onnx.load(path).opset_import if not entry.domain)
        for path in sorted(folder.glob("*.onnx"))
    }


class Runner:
    """Runs steps as GitHub's runner does: expressions filled in, bash, files that collect what steps say."""

    def __init__(self, workspace: Path, expressions: dict[str, str]) -> None:
        self.workspace, self.expressions = workspace, expressions
        home = workspace.parent
        self.files = {name: home / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        for path in self.files.values():
            path.touch()
        search = os.pathsep.join([str(home / "bin"), os.environ["PATH"]])
        self.environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(home / "temp")}
        self.environment |= {name: str(path) for name, path in self.files.items()}

    def fill(self, text: str) -> str:
        return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: self.expressions[found[1]], text)

    def run(self, step: dict[str, Any], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        told = dict(line.split("=", 1) for line in self.files["GITHUB_ENV"].read_text().splitlines())
        given = {name: self.fill(value) for name, value in {**(environment or {}), **step.get("env", {})}.items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.fill(step["run"])],
            cwd=self.workspace,
            env={**self.environment, **told, **given},
            capture_output=True,
            text=True,
            check=False,
        )

    def said(self, name: str) -> str:
        return self.files[name].read_text()


def use_action(workspace: Path, **inputs: str) -> tuple[Runner, subprocess.CompletedProcess[str]]:
    """Run the shell steps of the action, with defaults for the inputs that are not given."""
    assert set(inputs) <= {name.replace("-", "_") for name in ACTION["inputs"]}
    given = {name: inputs.get(name.replace("-", "_"), facts.get("default")) for name, facts in ACTION["inputs"].items()}
    expressions = {f"inputs.{name}": str(value) for name, value in given.items() if value is not None}
    runner = Runner(workspace, {**expressions, "github.action_path": str(ROOT)})
    install, run = (step for step in ACTION["runs"]["steps"] if "run" in step)
    installed = runner.run(install)
    assert installed.returncode == 0, installed.stderr
    assert set((workspace.parent / "installed").read_text().splitlines()) == {str(ROOT)}
    return runner, runner.run(run)


def test_the_action_checks(workspace: Path) -> None:
    runner, ran = use_action(workspace, models="models", opset="13")
    assert ran.returncode == 1
    assert ran.stdout.count("::warning file=models/") == 2
    assert runner.said("GITHUB_OUTPUT") == "status=1\n"
    assert "models/mean_18.onnx" in runner.said("GITHUB_STEP_SUMMARY")
    report = workspace.parent / "temp" / "reducelower-report" / "report.html"
    assert "<html" in report.read_text()
    upload = next(step for step in ACTION["runs"]["steps"] if step.get("uses", "").startswith("actions/upload"))
    runner.expressions["runner.temp"] = str(workspace.parent / "temp")
    assert runner.fill(upload["with"]["path"]) == str(report)


def test_the_action_is_content_with_legal_models(workspace: Path) -> None:
    runner, ran = use_action(workspace, models="models/mean_18.onnx", opset="18")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert runner.said("GITHUB_OUTPUT") == "status=0\n"


def test_the_action_converts_several_names_with_options(workspace: Path) -> None:
    shutil.copy(workspace / "models" / "mean_18.onnx", workspace / "a model.onnx")
    names = "models/*_21.onnx\n\na model.onnx\n"
    _, ran = use_action(
        workspace, command="convert", models=names, opset="13", options="--without ReduceMean --rules core"
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert opsets(workspace / "converted") == {"a model.onnx": 13, "branches_21.onnx": 13}
    nodes = onnx.load(workspace / "converted" / "a model.onnx").graph.node
    assert not any(node.op_type == "ReduceMean" for node in nodes)


def test_options_are_quoted_and_over_several_lines(workspace: Path) -> None:
    (workspace / "models" / "old ones").mkdir()
    shutil.copy(workspace / "models" / "mean_18.onnx", workspace / "models" / "old ones" / "mean.onnx")
    options = "--exclude 'old ones/*'  # not these\n--exclude \"mean*\"\n"
    _, ran = use_action(workspace, models="models", opset="13", options=options)
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.count("::warning file=") == 1
    assert "branches_21.onnx" in ran.stdout


def test_a_second_run_does_not_stumble_over_the_outputs_of_the_first(workspace: Path) -> None:
    for opset in ("13", "15"):
        _, ran = use_action(workspace, command="convert", models="models", opset=opset)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert set(opsets(workspace / "converted").values()) == {int(opset)}
        assert f"opset 18 -&gt; {opset}" in (workspace.parent / "temp/reducelower-report/report.html").read_text()


def test_a_python_that_is_too_old_is_refused(workspace: Path) -> None:
    old = workspace.parent / "bin" / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")  # what it says of its version
    runner = Runner(workspace, {"inputs.python": "python3", "github.action_path": str(ROOT)})
    ran = runner.run(ACTION["runs"]["steps"][0])
    assert ran.returncode == 2
    assert ran.stdout.startswith("::error title=reducelower::it needs Python 3.11 or newer")


def test_without_a_target_the_action_fails(workspace: Path) -> None:
    runner, ran = use_action(workspace, models="models")
    assert ran.returncode == 2
    assert "say what to check for" in ran.stderr
    assert runner.said("GITHUB_OUTPUT") == "status=2\n"


def test_what_cannot_be_converted_is_annotated(workspace: Path) -> None:
    (workspace / "models" / "broken.onnx").write_bytes(b"no model")
    runner, ran = use_action(workspace, command="convert", models="models", opset="13", output_dir="out")
    assert ran.returncode == 2
    assert [line.split(",")[0] for line in ran.stdout.splitlines()] == ["::error file=models/broken.onnx"]
    assert sorted(opsets(workspace / "out").values()) == [13, 13]
    assert "broken.onnx" in runner.said("GITHUB_STEP_SUMMARY")


def test_a_refusal_is_annotated_with_its_reason(workspace: Path) -> None:
    options = {"models": "models/mean_18.onnx", "opset": "13", "options": "--without ReduceMean"}
    for command in ("check", "convert"):
        _, ran = use_action(workspace, command=command, **options)
        assert ran.returncode == 1
        assert ran.stdout.startswith("::error file=models/mean_18.onnx,title=reducelower::graph: ReduceMean ")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"command": "polish"}, "the command is check or convert, not polish"),
        ({"models": "nothing/*.onnx"}, "it ended with status 2 before there was a report"),
        ({"opset": "99"}, "it ended with status 2 before there was a report"),
        ({"options": "--nonsense"}, "it ended with status 2 before there was a report"),
    ],
)
def test_a_wrong_input_is_annotated(workspace: Path, inputs: dict[str, str], said: str) -> None:
    _, ran = use_action(workspace, **{"models": "models", "opset": "13", **inputs})
    assert ran.returncode == 2
    assert ran.stdout.startswith("::error title=reducelower::")
    assert said in ran.stdout


def test_inputs_are_no_code(workspace: Path) -> None:
    evil = '$(touch evil) `touch evil`"; touch evil; "'
    for name in ("models", "opset", "options", "command"):
        use_action(workspace, **{"models": "models", "opset": "13", name: evil})
    assert not list(workspace.parent.rglob("evil"))
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_example_of_a_check_gives_the_action_what_it_takes() -> None:
    workflow = yaml.safe_load((EXAMPLES / "check.yml").read_text())
    (step,) = (step for step in workflow["jobs"]["check"]["steps"] if "reducelower" in step.get("uses", ""))
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert {name for name, facts in ACTION["inputs"].items() if facts.get("required")} <= set(step["with"])


def test_the_example_of_a_migration(workspace: Path) -> None:
    workflow = yaml.safe_load((EXAMPLES / "migrate.yml").read_text())
    log, programs = workspace.parent / "log", workspace.parent / "bin"
    for name in ("python", "gh"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {log}\n')
        (programs / name).chmod(0o755)
    # A repository that can be pushed to.
    for command in ("init -q", "init -q --bare ../origin", "remote add origin ../origin", "add models"):
        subprocess.run(["git", *command.split()], cwd=workspace, check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, "commit", "-qm", "models"], cwd=workspace, check=True)
    runner = Runner(workspace, {"inputs.opset": "15", "github.token": "token"})
    for step in workflow["jobs"]["migrate"]["steps"]:
        if "run" in step:
            ran = runner.run(step, workflow["env"])
            assert ran.returncode == 0, ran.stderr
    assert set(opsets(workspace / "models").values()) == {15}
    assert "models/mean_18.onnx" in runner.said("GITHUB_STEP_SUMMARY")
    assert log.read_text().splitlines()[0] == "python -m pip install reducelower"
    assert (
        log.read_text().splitlines()[1].startswith("gh pr create --title Migrate the models to opset 15 --body-file ")
    )
    pushed = ["git", "--git-dir", "../origin", "diff", "--stat", "models-at-opset-15^", "models-at-opset-15"]
    changed = subprocess.run(pushed, cwd=workspace, capture_output=True, text=True, check=False)
    assert "models/mean_18.onnx" in changed.stdout or "models/branches_21.onnx" in changed.stdout


# Hooks: pre-commit calls the entry with the arguments of the configuration and then the staged files.


def run_hook(name: str, arguments: list[str], files: list[str], workspace: Path) -> subprocess.CompletedProcess[str]:
    hook = HOOKS[name]
    command = [*shlex.split(hook["entry"]), *arguments, *(file for file in files if re.search(hook["files"], file))]
    search = os.pathsep.join([str(workspace.parent / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, check=False)


STAGED = ["models/mean_18.onnx", "models/branches_21.onnx", "models/README.md"]


def test_the_hook_that_checks(workspace: Path) -> None:
    before = opsets(workspace / "models")
    ran = run_hook("reducelower-check", ["--opset", "13"], STAGED, workspace)
    assert ran.returncode == 1
    assert "models/mean_18.onnx: does not fit opset 13" in ran.stdout
    assert opsets(workspace / "models") == before
    assert run_hook("reducelower-check", ["--opset", "18"], STAGED[:1], workspace).returncode == 0


def test_the_hook_that_converts(workspace: Path) -> None:
    for _ in range(2):
        ran = run_hook("reducelower-convert", ["--opset", "13"], STAGED, workspace)
        assert ran.returncode == 0, ran.stderr
        assert opsets(workspace / "models") == {"branches_21.onnx": 13, "mean_18.onnx": 13}
        after = {path.name: path.read_bytes() for path in (workspace / "models").iterdir()}
    # Converted models stay as they are, so that the second commit goes through.
    run_hook("reducelower-convert", ["--opset", "13"], STAGED, workspace)
    assert {path.name: path.read_bytes() for path in (workspace / "models").iterdir()} == after


def test_a_hook_that_converts_says_what_to_give_without_a_target(workspace: Path) -> None:
    ran = run_hook("reducelower-convert", [], STAGED, workspace)
    assert ran.returncode == 2
    assert "--opset" in ran.stderr


def test_a_hook_that_checks_fails_without_a_target(workspace: Path) -> None:
    ran = run_hook("reducelower-check", [], STAGED, workspace)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: say what to check for: --opset N, --for NAME, --without OPERATOR or several")


def test_a_hook_takes_its_target_from_a_configuration_file(workspace: Path) -> None:
    (workspace / "pyproject.toml").write_text("[tool.reducelower.check]\nopset = 13\n")
    assert run_hook("reducelower-check", [], STAGED, workspace).returncode == 1


def test_the_manifest_and_the_example_are_what_pre_commit_reads() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib")
    clientlib.load_manifest(ROOT / ".pre-commit-hooks.yaml")
    clientlib.load_config(EXAMPLES / "pre-commit-config.yaml")


def test_the_example_of_a_configuration_names_hooks_that_there_are() -> None:
    config = yaml.safe_load((EXAMPLES / "pre-commit-config.yaml").read_text())
    assert [hook["id"] for repo in config["repos"] for hook in repo["hooks"]] == ["reducelower-check"]
    assert set(HOOKS) == {"reducelower-check", "reducelower-convert"}
