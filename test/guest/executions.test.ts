import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Deadline, systemClock } from "@holdfast/async";
import { outputChunkMaxBytes, podUidOf, reattachWindowMs } from "@holdfast/contract";
import { ManualClock } from "@holdfast/testkit";
import { GuestLost, GuestNotReached } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { eventually } from "../../packages/guest-link/src/loopback.testing.ts";
import { faultProxy } from "./fault-proxy.ts";
import { clientOf, delivered, guestProcess, host, idOf, scriptOf } from "./guest-process.ts";

const never = new AbortController().signal;
const soon = () => new Deadline(systemClock, 5_000);

describe("a command through the client", () => {
  it("yields started, output, exited; chunks are within the limit of a message", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    const { bootId } = await guest.health(soon());
    const run = await delivered(guest.execute(scriptOf("plain", "seq 1 100000; echo err >&2; exit 7"), never));
    expect(run.events[0]).toEqual({ t: "started", executionId: "plain", bootId, attached: false });
    expect(run.exit.status).toEqual({ t: "code", code: 7 });
    expect(run.bytes.length).toBe(run.exit.outputBytes);
    const sizes = run.events.flatMap((event) => (event.t === "output" ? [event.data.length] : []));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(outputChunkMaxBytes);
    expect(guest.liveExecutions).toBe(0);
  });

  it("B04 is whole for a slow reader", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    const letsOthersGoFirst = () => guest.health(soon());
    const run = await delivered(guest.execute(scriptOf("slow", "seq 1 300000"), never), letsOthersGoFirst);
    const expected = Array.from({ length: 300_000 }, (_, at) => `${at + 1}\n`).join("");
    expect(run.bytes.equals(Buffer.from(expected))).toBe(true);
    expect(run.gapBytes).toBe(0);
  });

  it("B39 costs bounded memory while nobody reads", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    const run = guest.execute(scriptOf("unread", "head -c 3000000000 /dev/zero"), never)[Symbol.asyncIterator]();
    await run.next();
    const before = process.memoryUsage().rss;
    for (let at = 0; at < 30; at += 1) await delivered(guest.execute(scriptOf(`other${at}`, "echo hi"), never));
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
    await run.return?.(undefined);
  });

  it("shows the probe's text as the guest gives it", async () => {
    const { address } = await guestProcess();
    expect(await clientOf(address).probe(soon())).toMatch(/^CapEff:\t[0-9a-f]{16}$/m);
  });
});

/** What had arrived before the end is still delivered; then the end comes. */
async function toItsEnd(run: AsyncIterator<unknown>): Promise<void> {
  while (!(await run.next()).done);
}

describe("a client that goes", () => {
  it("ends a command that is bound to it, at once and whether or not it reads", async () => {
    const { address, root } = await guestProcess();
    const guest = clientOf(address);
    const gone = new AbortController();
    const wish = scriptOf("bound", "trap 'echo ended > ended; exit' TERM; echo ready; while :; do sleep 0.05; done", {
      onDisconnect: "cancel",
    });
    const run = guest.execute(wish, gone.signal)[Symbol.asyncIterator]();
    await run.next();
    await run.next();
    gone.abort(new Error("the client went"));
    await eventually(() => existsSync(join(root, "ended")));
    await expect(toItsEnd(run)).rejects.toThrow("the client went");
  });

  it("leaves another command running, and it can be joined again from the start", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    const gone = new AbortController();
    const wish = scriptOf("free", "echo one; sleep 0.3; echo two");
    const run = guest.execute(wish, gone.signal)[Symbol.asyncIterator]();
    await run.next();
    gone.abort(new Error("the client went"));
    await expect(toItsEnd(run)).rejects.toThrow("the client went");
    const again = await delivered(guest.execute(wish, never));
    expect(again.bytes.toString()).toBe("one\ntwo\n");
    expect(again.events[0]).toMatchObject({ t: "started", attached: true });
  });
});

describe("a lost link", () => {
  it("B07 B27 is taken up at the last delivered byte, however often it is cut: no repeat, no hole, the real exit", async () => {
    const { address } = await guestProcess();
    const proxy = await faultProxy(address);
    const guest = clientOf(proxy.address);
    let cuts = 0;
    const wish = scriptOf("counter", "for i in $(seq 1 400); do echo $i; sleep 0.005; done; exit 9");
    const run = await delivered(guest.execute(wish, never), (event) => {
      if (event.t !== "output" || event.offset < cuts * 50) return;
      cuts += 1;
      proxy.cut();
    });
    expect(cuts).toBeGreaterThan(10);
    expect(run.bytes.toString()).toBe(Array.from({ length: 400 }, (_, at) => `${at + 1}\n`).join(""));
    expect(run.exit.status).toEqual({ t: "code", code: 9 });
    expect(run.events.filter(({ t }) => t === "started")).toHaveLength(1);
  });

  it("B07 is waited out: no exit is reported without a real one", async () => {
    const { address, root } = await guestProcess();
    const proxy = await faultProxy(address);
    const guest = clientOf(proxy.address);
    const line = "echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 6";
    const began = Promise.withResolvers<void>();
    let isOver = false;
    const running = delivered(guest.execute(scriptOf("outage", line), never), (event) => {
      if (event.t === "output") began.resolve();
    }).finally(() => {
      isOver = true;
    });
    await began.promise;
    proxy.refuse(true);
    await eventually(() => proxy.refused >= 3);
    expect(isOver).toBe(false);
    writeFileSync(join(root, "go"), "");
    const direct = clientOf(address).executions;
    await expect.poll(async () => (await direct.get(idOf("outage"), soon())).execution.exit).toBeDefined();
    const refused = proxy.refused;
    await eventually(() => proxy.refused > refused);
    expect(isOver).toBe(false);
    proxy.refuse(false);
    const run = await running;
    expect(run.bytes.toString()).toBe("before\nafter\n");
    expect(run.exit.status).toEqual({ t: "code", code: 6 });
  });

  it("B33 starts the command once although every answer to the start was lost", async () => {
    const { address, root } = await guestProcess();
    const proxy = await faultProxy(address);
    const guest = clientOf(proxy.address);
    await guest.health(soon());
    proxy.loseAnswers(true);
    const running = delivered(guest.execute(scriptOf("once", "echo x >> c; sleep 2; echo done"), never));
    await eventually(() => proxy.lost >= 5);
    proxy.loseAnswers(false);
    const run = await running;
    expect(run.bytes.toString()).toBe("done\n");
    expect(readFileSync(join(root, "c"), "utf8")).toBe("x\n");
  });

  it("L44 ends as EXECUTION_DETACHED with the next offset when the guest is not reached again in the window; the command lives on", async () => {
    const { address } = await guestProcess();
    const proxy = await faultProxy(address);
    const clock = new ManualClock();
    const guest = clientOf(proxy.address, clock);
    const run = guest.execute(scriptOf("away", "echo four; sleep 1; echo more"), never)[Symbol.asyncIterator]();
    await run.next();
    await run.next();
    proxy.refuse(true);
    let failure: unknown;
    const next = run.next().catch((error) => {
      failure = error;
    });
    let passedMs = 0;
    while (failure === undefined) {
      await clock.advance(100);
      passedMs += 100;
    }
    await next;
    expect(failure).toMatchObject({
      reason: "EXECUTION_DETACHED",
      metadata: { execution_id: "away", next_offset: "5" },
    });
    expect(passedMs).toBeGreaterThanOrEqual(reattachWindowMs);
    proxy.refuse(false);
    const again = await delivered(clientOf(address).execute(scriptOf("away", "echo four; sleep 1; echo more"), never));
    expect(again.bytes.toString()).toBe("four\nmore\n");
  });

  it("B07 to an agent that was killed ends as lost, never as an exit, also when another process has taken its place", async () => {
    const first = await guestProcess();
    const guest = clientOf(first.address);
    const run = guest.execute(scriptOf("killed", "echo up; sleep 5"), never)[Symbol.asyncIterator]();
    await run.next();
    await run.next();
    first.child.kill("SIGKILL");
    await first.exited;
    await guestProcess(first);
    await expect(run.next()).rejects.toBeInstanceOf(GuestLost);
  });

  it("L43 does not run the command on another agent process when it is not known whether it was started", async () => {
    const first = await guestProcess();
    const proxy = await faultProxy(first.address);
    const guest = clientOf(proxy.address);
    await guest.health(soon());
    proxy.loseAnswers(true);
    const run = delivered(guest.execute(scriptOf("unknown", "echo x >> c; sleep 5"), never));
    await eventually(() => proxy.lost >= 1 && existsSync(join(first.root, "c")));
    first.child.kill("SIGKILL");
    await first.exited;
    await guestProcess(first);
    proxy.loseAnswers(false);
    await expect(run).rejects.toBeInstanceOf(GuestLost);
    expect(readFileSync(join(first.root, "c"), "utf8")).toBe("x\n");
  });
});

describe("a client that is closed", () => {
  it("ends its executions as lost, soon and never as not reached, since they were started", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    const run = guest
      .execute(scriptOf("closed", "echo up; sleep 300", { onDisconnect: "cancel" }), never)
      [Symbol.asyncIterator]();
    await run.next();
    await run.next();
    const next = run.next();
    guest.close();
    const asked = performance.now();
    await expect(next).rejects.toBeInstanceOf(GuestLost);
    expect(performance.now() - asked).toBeLessThan(2_000);
  });

  it("L39 never calls a start unsent whose OPEN went out, also when another pod has the address then", async () => {
    const first = await guestProcess();
    const proxy = await faultProxy(first.address);
    const guest = clientOf(proxy.address);
    await guest.health(soon());
    proxy.loseAnswers(true);
    const run = delivered(guest.execute(scriptOf("moved", "echo x >> c; sleep 5"), never));
    await eventually(() => proxy.lost >= 1);
    first.child.kill("SIGKILL");
    await first.exited;
    await guestProcess({ ...first, address: { ...first.address, podUid: podUidOf("the next pod") } });
    await expect(run).rejects.toBeInstanceOf(GuestLost);
  });
});

describe("a guest that is not reached", () => {
  it("L39 proves that nothing was sent: nobody there, or another pod at the address", async () => {
    const { address } = await guestProcess();
    const nobody = clientOf({ ...address, host, port: 1 });
    const run = nobody.execute(scriptOf("none", "true"), never)[Symbol.asyncIterator]();
    const error = await run.next().catch((cause) => cause);
    expect(error).toBeInstanceOf(GuestNotReached);
    expect(error.why).toBe("no-connection");
    const stranger = clientOf({ ...address, podUid: podUidOf("another pod") });
    await expect(stranger.health(soon())).rejects.toMatchObject({ name: "GuestNotReached", why: "token-refused" });
  });

  it("answers are told from that: a refusal is a HoldfastError with the guest's reason", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    await delivered(guest.execute(scriptOf("same", "true"), never));
    const other = guest.execute(scriptOf("same", "false"), never)[Symbol.asyncIterator]();
    await expect(other.next()).rejects.toMatchObject({ name: "HoldfastError", reason: "EXECUTION_EXISTS" });
    const nowhere = guest.execute(scriptOf("cwd", "true", { cwd: "absent" }), never)[Symbol.asyncIterator]();
    await expect(nowhere.next()).rejects.toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "cwd" } });
  });
});
