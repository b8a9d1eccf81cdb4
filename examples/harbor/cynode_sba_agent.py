# SPDX-License-Identifier: Apache-2.0
"""cynode-sba as an agent of Harbor 0.24: puts the one static file into a task's container and runs it there. README.md says how.

Options (--ak NAME=VALUE):
    binary               the static file; default: $CYNODE_SBA_BINARY, cynode-sba of the PATH, or this checkout's release build
    workspace            where the agent works; default: the container's working directory
    user                 UID:GID to work as where the container's user is root; default: the workspace's owner, or 65534:65534
    max_runtime_seconds  of a job, 1800; keep it below the task's own limit, which ends the runner too
    max_output_bytes     of a step, 1 MiB
"""
import asyncio
import json
import os
import shlex
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import override

from cynode_sba import atif
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.task.config import NetworkMode

INSTALLED = "/installed-agent/cynode-sba"  # the directory is Harbor's
NOBODY = "65534:65534"
ENDPOINTS = ("OLLAMA_BASE_URL", "OPENAI_BASE_URL")
STOPPING = 10  # seconds that the runner may take to end and to write its result after SIGTERM
# Failures that say nothing about the model: Harbor counts the trial as an error, and may try it again.
NOT_THE_MODEL = {"schema_validation", "environment_invalid", "runs_as_root", "inference_unavailable", "internal_error"}


def find_binary(given: str | None) -> Path:
    """The static file on this machine."""
    built = Path(__file__).resolve().parents[2] / "build" / "release" / "cynode-sba"
    found = given or os.environ.get("CYNODE_SBA_BINARY") or shutil.which("cynode-sba") or built
    if not Path(found).is_file():
        raise FileNotFoundError(f"there is no cynode-sba at {found}: name the static file with --ak binary=FILE")
    return Path(found)


class CynodeSba(BaseInstalledAgent):
    """The runner in a task's container, with a model of an Ollama or OpenAI-compatible endpoint."""

    capabilities = AgentCapabilities(atif=True)

    def __init__(self, *args, binary: str | None = None, workspace: str | None = None, user: str | None = None,
                 max_runtime_seconds: int = 1800, max_output_bytes: int = 1 << 20, **kwargs):
        super().__init__(*args, **kwargs)
        self.binary, self.workspace, self.user = find_binary(binary), workspace, user
        self.limits = {"max_runtime_seconds": int(max_runtime_seconds), "max_output_bytes": int(max_output_bytes)}

    @staticmethod
    @override
    def name() -> str:
        return "cynode-sba"

    @override
    def get_version_command(self) -> str:
        return f"{INSTALLED} --version"

    @override
    def parse_version(self, stdout: str) -> str:
        return stdout.split()[1]

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        await environment.upload_file(self.binary, INSTALLED)
        await self.exec_as_root(environment, f"chmod 755 {INSTALLED} && {INSTALLED} --version")

    def endpoint(self) -> dict[str, str]:
        """The variables that name the endpoint: of --ae, or of Harbor's own environment."""
        found = {name: value for name in ENDPOINTS if (value := self._get_env(name))}
        if not found:
            raise ValueError(f"no endpoint is named: give --ae {ENDPOINTS[0]}=URL or --ae {ENDPOINTS[1]}=URL")
        return found

    def job(self, instruction: str, environment: BaseEnvironment) -> dict:
        """The job file. The endpoint tells which of the names it knows the model by, with or without its provider."""
        if not self.model_name:
            raise ValueError("no model is named: give --model NAME")
        is_public = environment.network_policy.network_mode == NetworkMode.PUBLIC
        return {
            "protocol_version": "1.0", "job_id": str(self.context_id or uuid.uuid4()), "task_id": environment.environment_name,
            "execution_mode": "agent_inference", "constraints": {**self.limits, "ext_net_allowed": is_public},
            "inference": {"allowed_models": list(dict.fromkeys([self.model_name, self._parsed_model_name]))},
            "context": {"task_context": instruction},
        }

    async def upload_job(self, job: dict, environment: BaseEnvironment) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "job.json"
            path.write_text(json.dumps(job), encoding="utf-8")
            await environment.upload_file(path, str(self.environment_logs_dir / path.name))

    async def place(self, environment: BaseEnvironment) -> tuple[str, str | None, str]:
        """The workspace, the user to become (None: the container's user is not root), and the workspace's owner."""
        enter = f"cd {shlex.quote(self.workspace)} && " if self.workspace else ""
        done = await self.exec_as_agent(environment, f"{enter}id -u && stat -c %u:%g . && pwd")
        uid, owner, workspace = done.stdout.strip().split("\n")
        if workspace == "/":
            raise ValueError("the task works in /, which cannot be a workspace: give --ak workspace=DIRECTORY")
        if uid != "0":
            return workspace, None, owner
        return workspace, self.user or (NOBODY if owner.startswith("0:") else owner), owner

    async def stop(self, environment: BaseEnvironment) -> None:
        """Ends the runner, which ends its processes and writes its result."""
        pid = f"$(cat {self.environment_logs_dir}/pid)"
        await environment.exec(f"kill -TERM {pid}; for i in $(seq {10 * STOPPING}); do kill -0 {pid} || break; sleep 0.1; done", user="root")

    async def failure(self, environment: BaseEnvironment) -> tuple[str | None, str]:
        """The failure code and message of the result; "no result" where there is none."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "result.json"
            try:
                await environment.download_file(str(self.environment_logs_dir / path.name), path)
                result = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, RuntimeError, ValueError) as problem:
                return "internal_error", f"there is no result: {problem}"
        return result["failure_code"], result["failure_message"] or ""

    @override
    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        logs, endpoint = self.environment_logs_dir, self.endpoint()
        await self.upload_job(self.job(instruction, environment), environment)
        workspace, user, owner = await self.place(environment)
        quoted, as_user = shlex.quote(workspace), ""
        if user:  # the runner does not work as root
            await self.exec_as_root(environment, f"chown -R {shlex.quote(user)} {quoted} {logs}")
            as_user, endpoint = f"--user {shlex.quote(user)} ", {**endpoint, "HOME": "/tmp"}
        command = (f"echo $$ >{logs}/pid; exec {INSTALLED} --job {logs}/job.json --result {logs}/result.json "
                   f"--workspace {quoted} {as_user}2>{logs}/log.jsonl")
        try:
            await environment.exec(command, env=endpoint)
        except asyncio.CancelledError:  # the task's time is up
            await asyncio.shield(self.stop(environment))
            raise
        finally:
            if user:
                await asyncio.shield(environment.exec(f"chown -R {owner} {quoted}", user="root"))
        code, message = await self.failure(environment)
        if code in NOT_THE_MODEL:
            raise RuntimeError(f"{code}: {message}")

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        """The trajectory, made from the journal; from it, tokens and outcome."""
        try:
            document = atif.of_file(self.logs_dir / "journal.jsonl")
        except (OSError, ValueError):  # the runner did not begin
            return
        (self.logs_dir / "trajectory.json").write_text(document.model_dump_json(exclude_none=True), encoding="utf-8")
        metrics, extra = document.final_metrics, document.extra
        context.n_input_tokens, context.n_output_tokens = metrics.total_prompt_tokens, metrics.total_completion_tokens
        context.metadata = {name: extra.get(name) for name in ("status", "failure_code", "failure_message")}
