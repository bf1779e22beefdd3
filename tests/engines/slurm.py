"""A SLURM cluster on this machine, of the scheduler's own programs: ``python tests/engines/slurm.py COMMAND...``.

The command runs with a cluster that is started for it and stopped after it, as in
``python tests/engines/slurm.py snakemake --workflow-profile profiles/slurm``. On Debian and Ubuntu
``apt-get install slurm-wlm munge`` brings the programs; nothing of the system's own configuration is read or changed.

The two nodes are two daemons on the same machine, which say that they have the processors, the memory and the GPUs
that `profiles/slurm` asks for, whatever there is. What a real cluster has and this has not: several machines with a
shared file system between them, whose files appear late; accounting (`sacct`); control groups; real GPUs.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import psutil

PLUGIN = "snakemake_executor_plugin_slurm"
NODES = ("one", "two")
OF_A_NODE = "CPUs=8 RealMemory=16000 Gres=gpu:1"  # as much as one job of profiles/slurm asks for
TIMEOUT = 300.0  # seconds that a daemon may take to answer: the machine may be busy

# The profile as it is, but jobs are asked for sooner: those of the tests take seconds.
SUBMIT = ["snakemake", "--printshellcmds", "--nocolor", "--workflow-profile", "profiles/slurm"]
SUBMIT += ["--slurm-init-seconds-before-status-checks", "8"]

# What `profiles/slurm` asks for: partition, processors of a job, memory, GPUs. Memory is checked by polling, since
# control groups would need a machine of one's own.
CONFIGURATION = """\
ClusterName=sandglass
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
KillWait=2
MinJobAge=86400
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
{nodes}
PartitionName=gpu Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Return in words what this machine lacks for a cluster, or nothing."""
    programs = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun", "setpriv") if not _program(name)]
    if programs:
        return f"no {', '.join(programs)} here: apt-get install slurm-wlm munge util-linux"
    if not find_spec(PLUGIN):
        return f"no {PLUGIN.replace('_', '-')} here: pip install -r requirements-slurm.txt"
    return ""


def version() -> str:
    """Return the version of SLURM, as 22.05.8."""
    return subprocess.check_output([_program("slurmd") or "slurmd", "-V"], text=True).split()[-1]


def _program(name: str) -> str | None:
    """Return the path of a program; daemons lie where the path of a user does not lead."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")


@dataclass(frozen=True)
class Job:
    """A job of SLURM."""

    number: str
    rule: str  # of the Snakefile
    state: str
    node: str


@dataclass
class Cluster:
    """A controller and two nodes at work."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """What a command needs to find this cluster and no other."""
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def ask(self, *command: str) -> str:
        """Return what a command of SLURM prints."""
        done = subprocess.run(
            command, env=os.environ | self.env, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def jobs(self) -> list[Job]:
        """Return all jobs, those that have ended among them, in the order in which they were submitted."""
        lines = self.ask("squeue", "--states=all", "--noheader", "--sort=i", "--format", "%i|%k|%T|%N").splitlines()
        return [
            Job(number, rule.removeprefix("rule_"), *rest)
            for number, rule, *rest in (each.split("|") for each in lines)
        ]

    def state(self, node: str) -> str:
        """Return how a node stands: ``idle``, ``mixed``, ``down``."""
        return self.ask("sinfo", "--noheader", "--nodes", node, "--format", "%T")

    def wait(self, node: str, *states: str) -> None:
        """Wait until a node stands so."""
        deadline = time.monotonic() + TIMEOUT
        while (state := self.state(node)) not in states:
            if time.monotonic() > deadline:
                raise RuntimeError(f"node {node} is {state}: {self._said(f'slurmd-{node}.log')}")
            time.sleep(0.2)

    def start(self) -> None:
        """Start the daemons and wait until both nodes take jobs."""
        self._configure()
        self._launch("munged", "--foreground", "--force", *self._of_munge())
        _until(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start_controller()
        for node in NODES:
            self.join(node)
        for node in NODES:
            self.wait(node, "idle")

    def start_controller(self) -> None:
        """Start the controller, which knows the jobs of one that was here before, and wait until it answers."""
        self._launch("slurmctld", "-D")
        _until(lambda: "UP" in self._ping(), "slurmctld")

    def halt(self, daemon: str) -> None:
        """Kill a daemon."""
        process = self.daemons.pop(daemon)
        process.kill()
        process.wait()

    def join(self, node: str) -> None:
        """Start a node, which reports to the controller."""
        self._launch("slurmd", "-D", "-N", node, name=node)

    def lose(self, node: str) -> None:
        """Have a node go, as in a power cut, with all that runs there."""
        self.halt(node)
        jobs = self._at_work(node)
        for process in [*self._watchers(jobs), *jobs]:  # else who watches a job would report how it ended
            with contextlib.suppress(psutil.Error):
                process.kill()
        # What the controller finds by itself when a node has not answered for SlurmdTimeout, five minutes by default.
        self.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=gone")

    def stop(self) -> None:
        """End all that runs in the cluster, and the cluster."""
        for name in [*self.daemons]:
            self.halt(name)
        for process in self._at_work():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _watchers(self, jobs: list[psutil.Process]) -> list[psutil.Process]:
        """Return SLURM's own processes that started ``jobs``; nothing tells them from those of another node."""
        found = []
        for process in jobs:
            with contextlib.suppress(psutil.Error):
                parent = process.parent()
                if parent and parent.name() == "slurmstepd":
                    found.append(parent)
        return found

    def _configure(self) -> None:
        for name in ("bin", "state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        # In a job Snakemake's plugin calls srun without SLURM_CONF, as where the configuration lies in /etc/slurm.
        srun = self.folder / "bin/srun"
        srun.write_text(
            f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec {_program("srun")} "$@"\n', encoding="utf-8"
        )
        srun.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        host, user = socket.gethostname().split(".")[0], pwd.getpwuid(os.getuid()).pw_name
        ports = _free_ports(1 + len(NODES))
        nodes, gpus = [], []
        for node, port in zip(NODES, ports[1:], strict=True):
            (self.folder / f"gpu-{node}").touch()
            nodes.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {OF_A_NODE}")
            gpus.append(f"NodeName={node} Name=gpu File={self.folder}/gpu-{node}\n")
        text = CONFIGURATION.format(
            host=host, user=user, port=ports[0], folder=self.folder, nodes="\n".join(nodes), names=",".join(NODES)
        )
        (self.folder / "slurm.conf").write_text(text, encoding="utf-8")
        (self.folder / "gres.conf").write_text("".join(gpus), encoding="utf-8")

    def _of_munge(self) -> list[str]:
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid"}
        files |= {"log-file": "munge.log", "seed-file": "munge.seed"}
        return [f"--{option}={self.folder / name}" for option, name in files.items()]

    def _launch(self, program: str, *words: str, name: str | None = None) -> None:
        path = _program(program)
        assert path, program
        with (self.folder / f"{name or program}.out").open("ab") as out:
            self.daemons[name or program] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", path, *words],  # none outlives who started it
                env=os.environ | self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _ping(self) -> str:
        for name, daemon in self.daemons.items():
            if daemon.poll() is not None:
                raise RuntimeError(f"{name} ended with {daemon.returncode}: {self._said(f'{name}.out')}")
        with contextlib.suppress(RuntimeError):
            return self.ask("scontrol", "ping")
        return ""

    def _said(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8", errors="replace")[-2000:]

    def _at_work(self, node: str = "") -> list[psutil.Process]:
        """Return what runs for jobs, on one node or on all: no daemon has it as a child."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                environment = process.environ()
                if environment.get("SLURM_CONF") != self.env["SLURM_CONF"]:
                    continue
                if environment.get("SLURMD_NODENAME", "") == node if node else _of_slurm(process, environment):
                    found.append(process)
        return found


def _of_slurm(process: psutil.Process, environment: dict[str, str]) -> bool:
    """Return whether a process belongs to a job, or to the daemons, and not to who uses the cluster."""
    return "SLURM_JOB_ID" in environment or process.name().startswith("slurm")


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not start")
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    """Return ports on which nobody listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Yield a cluster at work, and end it."""
    # A short path, since that of a socket may have no more than a hundred letters.
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        made = Cluster(Path(folder))
        try:
            made.start()
            yield made
        finally:
            made.stop()


def main(command: list[str]) -> int:
    """Run a command with a cluster."""
    if lack := "usage: slurm.py COMMAND..." if not command else missing():
        print(lack, file=sys.stderr)
        return 2
    signal.signal(signal.SIGINT, lambda *_: None)  # it reaches the command, which ends in order
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with cluster() as made:
        return subprocess.run(command, env=os.environ | made.env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
