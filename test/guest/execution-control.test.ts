import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Deadline, systemClock } from "@holdfast/async";
import { bootIdOf, holderEpochFrom } from "@holdfast/contract";
import { type ExecutionEvent, LeaveRunning } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { eventually } from "../../packages/guest-link/src/loopback.testing.ts";
import { faultProxy } from "./fault-proxy.ts";
import { clientOf, delivered, guestProcess, idOf, scriptOf } from "./guest-process.ts";

const never = new AbortController().signal;
const soon = () => new Deadline(systemClock, 5_000);
const attachTo = (id: string, fromOffset = 0) => ({
  executionId: idOf(id),
  fromOffset,
  maxOutputBytes: undefined,
  expectedBootId: undefined,
});
const cancelOf = (id: string) => ({ executionId: idOf(id), graceMs: undefined, expectedBootId: undefined });

/** Reads on until output has come up to an offset. */
async function readUpTo(run: AsyncIterator<ExecutionEvent>, offset: number): Promise<void> {
  for (;;) {
    const { value, done } = await run.next();
    if (done) throw new Error("it ended before");
    if (value.t === "output" && value.offset + value.data.length >= offset) return;
  }
}

describe("the commands of a guest, through the client", () => {
  it("G8 an attach replays from its offset, goes on live, survives a cut link, and ends nothing when it goes", async () => {
    const { address } = await guestProcess();
    const proxy = await faultProxy(address);
    const guest = clientOf(address);
    const starting = delivered(
      guest.execute(scriptOf("seen", "for i in $(seq 1 200); do echo $i; sleep 0.005; done; exit 3"), never),
    );
    const reader = clientOf(proxy.address);
    let cuts = 0;
    const chunks: Uint8Array[] = [];
    let exit: Extract<ExecutionEvent, { t: "exited" }> | undefined;
    await eventually(() => guest.liveExecutions === 1);
    for await (const event of reader.executions.attach(attachTo("seen"), never)) {
      if (event.t === "started") expect(event).toMatchObject({ executionId: "seen", attached: true });
      if (event.t === "exited") exit = event;
      if (event.t !== "output") continue;
      chunks.push(event.data);
      if (event.offset < cuts * 60) continue;
      cuts += 1;
      proxy.cut();
    }
    const whole = await starting;
    expect(cuts).toBeGreaterThan(3);
    expect(Buffer.concat(chunks).equals(whole.bytes)).toBe(true);
    expect(exit?.exit.status).toEqual({ t: "code", code: 3 });
    const tail: Buffer[] = [];
    for await (const event of reader.executions.attach(attachTo("seen", 10), never))
      if (event.t === "output") tail.push(Buffer.from(event.data));
    expect(Buffer.concat(tail).equals(whole.bytes.subarray(10))).toBe(true);
    expect(reader.liveExecutions).toBe(0);
  });

  it("an attach is refused by name: no such id, an offset past the end, another agent process", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    await delivered(guest.execute(scriptOf("short", "echo hi"), never));
    const first = (wish: Parameters<typeof guest.executions.attach>[0]) =>
      guest.executions.attach(wish, never)[Symbol.asyncIterator]().next();
    await expect(first(attachTo("nobody"))).rejects.toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
    await expect(first(attachTo("short", 4))).rejects.toMatchObject({ reason: "OFFSET_OUT_OF_RANGE" });
    const other = { ...attachTo("short"), expectedBootId: bootIdOf("another") };
    await expect(first(other)).rejects.toMatchObject({ reason: "GUEST_RESTARTED" });
    const start = guest.execute(scriptOf("never", "touch ran", { expectedBootId: bootIdOf("another") }), never);
    await expect(start[Symbol.asyncIterator]().next()).rejects.toMatchObject({ reason: "GUEST_RESTARTED" });
  });

  it("G12 input, signals, get, list and cancel", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    const { executions } = guest;
    // It waits without a child: one that a signal to the group ends would have the shell say so among its output.
    const text = "mkfifo waits; exec 3<>waits; trap 'echo usr1' USR1; cat; echo over; while :; do read line <&3; done";
    const wish = scriptOf("talks", text, { streamedStdin: true });
    const run = guest.execute(wish, never)[Symbol.asyncIterator]();
    await run.next();
    const executionId = idOf("talks");
    const write = (offset: number, text: string, end = false) =>
      executions.writeStdin({ executionId, offset, data: Buffer.from(text), end }, soon());
    expect(await write(0, "hello\n")).toEqual({ nextOffset: 6, closed: false });
    await readUpTo(run, 6);
    await expect(write(9, "x")).rejects.toMatchObject({ reason: "OFFSET_OUT_OF_RANGE", metadata: { expected: "6" } });
    expect(await write(6, "", true)).toEqual({ nextOffset: 6, closed: false });
    await readUpTo(run, 11);
    expect(await executions.signal({ executionId, signal: "USR1", expectedBootId: undefined }, soon())).toEqual({
      alreadyEnded: false,
    });
    await readUpTo(run, 16);
    const { bootId } = await guest.health(soon());
    const { execution: running, bootId: owner } = await executions.get(executionId, soon());
    expect(owner).toBe(bootId);
    expect(running).toMatchObject({
      executionId,
      command: "sh",
      outputBytes: 16,
      keptFrom: 0,
      exit: undefined,
      hasClient: true,
    });
    expect(Math.abs(running.startedAtMs - Date.now())).toBeLessThan(60_000);
    expect(await executions.list(soon())).toEqual({ executions: [running], bootId });
    expect(await executions.cancel({ ...cancelOf("talks"), graceMs: 4_000 }, soon())).toEqual({ alreadyEnded: false });
    expect(await executions.cancel(cancelOf("talks"), soon())).toEqual({ alreadyEnded: true });
    // Confirmed is that nothing of it is left; its result stands a look later.
    await expect
      .poll(async () => (await executions.get(executionId, soon())).execution.exit)
      .toMatchObject({ status: { t: "signal", signal: "SIGTERM" } });
    await expect(executions.get(idOf("nobody"), soon())).rejects.toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
    await run.return?.(undefined);
  });

  it("G6 a client that leaves its command running does not end it, though it is bound to it", async () => {
    const { address, root } = await guestProcess();
    const guest = clientOf(address);
    const gone = new AbortController();
    const text =
      "trap 'echo > ended; exit' TERM; echo ready; while [ ! -e go ]; do sleep 0.02; done; echo went on > done";
    const run = guest.execute(scriptOf("left", text, { onDisconnect: "cancel" }), gone.signal)[Symbol.asyncIterator]();
    await readUpTo(run, 6);
    gone.abort(new LeaveRunning());
    await expect(run.next()).rejects.toBeInstanceOf(LeaveRunning);
    await expect(guest.executions.get(idOf("left"), soon())).resolves.toMatchObject({ execution: { exit: undefined } });
    const { executions } = guest;
    await executions.signal({ executionId: idOf("left"), signal: "WINCH", expectedBootId: undefined }, soon());
    writeFileSync(join(root, "go"), "");
    await eventually(() => existsSync(join(root, "done")));
    expect(existsSync(join(root, "ended"))).toBe(false);
    expect(readFileSync(join(root, "done"), "utf8")).toBe("went on\n");
  });
});

describe("a holder that was superseded", () => {
  it("B86 reads its command to the end across a cut link, and its going ends nothing", async () => {
    const { address } = await guestProcess();
    const proxy = await faultProxy(address);
    const [one, two] = [1, 2].map(holderEpochFrom);
    await clientOf(address).fence(one ?? holderEpochFrom(1), soon());
    const old = clientOf(proxy.address).under(one);
    const wish = scriptOf("kept", "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two", {
      onDisconnect: "cancel",
    });
    let going: Promise<unknown> | undefined;
    const running = delivered(old.execute(wish, never), async (event) => {
      if (event.t !== "output" || event.offset > 0) return;
      await clientOf(address).fence(two ?? holderEpochFrom(2), soon());
      proxy.cut(); // Taken up again as a reader alone: it may not take the client's place any more.
      const next = clientOf(address).under(two);
      going = delivered(next.execute(scriptOf("go", "touch go"), never));
    });
    expect((await running).bytes.toString()).toBe("one\ntwo\n");
    await going;
  });

  it("B86 whose start got no answer learns whether its command exists, before it is told that it may not start it", async () => {
    const { address, root } = await guestProcess();
    const proxy = await faultProxy(address);
    const [one, two] = [holderEpochFrom(1), holderEpochFrom(2)];
    const direct = clientOf(address);
    await direct.fence(one, soon());
    const old = clientOf(proxy.address).under(one);
    await old.health(soon());
    proxy.loseAnswers(true);
    const runs = delivered(old.execute(scriptOf("ran", "echo x >> c; echo here"), never));
    await eventually(() => proxy.lost >= 1 && existsSync(join(root, "c")));
    await direct.fence(two, soon());
    proxy.loseAnswers(false);
    expect((await runs).bytes.toString()).toBe("here\n");
    expect(readFileSync(join(root, "c"), "utf8")).toBe("x\n");
    // One that was never started is refused by that name.
    const fresh = old.execute(scriptOf("new", "true"), never)[Symbol.asyncIterator]();
    await expect(fresh.next()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED", metadata: { stored: "2" } });
  });
});
