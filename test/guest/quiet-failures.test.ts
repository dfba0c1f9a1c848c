import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { guestDialTimeoutMs, linkSilenceMaxMs } from "@holdfast/contract";
import { LinkClient } from "@holdfast/guest-link";
import { ManualClock } from "@holdfast/testkit";
import { expect, it, onTestFinished } from "vitest";
import { relay } from "../../packages/guest-link/src/loopback.testing.ts";
import { clientOf, delivered, guestProcess, scriptOf } from "./guest-process.ts";

const never = new AbortController().signal;
const soon = (ms = 30_000) => new Deadline(systemClock, ms);

it("B43 400 streams that are open and silent hold up no call: it has a connection of its own", async () => {
  const { address } = await guestProcess();
  const link = new LinkClient({ ...address, token: address.podUid }, systemClock);
  onTestFinished(() => link.close());
  const { startExecution, followExecution } = ExecutionService.method;
  const over: unknown[] = [];
  const listener = { message: () => undefined, data: () => undefined, over: (error: unknown) => void over.push(error) };
  const command = { command: "sleep", args: ["300"] };
  await link.open(startExecution, { executionId: "quiet", command }, listener, { within: soon() });
  for (let at = 1; at < 400; at += 1) {
    await link.open(followExecution, { executionId: "quiet" }, listener, { within: soon() });
  }
  using within = soon(5_000);
  const { runningExecutions } = await link.call(AgentService.method.health, {}, { within });
  expect([runningExecutions, link.openStreams, over]).toEqual([1, 400, []]);
});

it("B45 packets that vanish without a word are noticed by a silent reader; the guest keeps the program", async () => {
  const { address } = await guestProcess();
  using between = await relay(address);
  const clock = new ManualClock();
  const guest = clientOf({ ...address, host: between.host, port: between.port }, clock);
  const wish = scriptOf("silent", "echo four; sleep 3; echo more");
  const run = guest.execute(wish, never)[Symbol.asyncIterator]();
  await run.next();
  await run.next();
  between.freeze();
  let failure: unknown;
  const next = run.next().catch((error) => {
    failure = error;
  });
  let passedMs = 0;
  while (failure === undefined) {
    await clock.advance(250);
    passedMs += 250;
  }
  await next;
  expect(failure).toMatchObject({ reason: "EXECUTION_DETACHED", metadata: { next_offset: "5" } });
  // Silence for so long, then one try to come back; the rest is steps of this clock.
  expect(passedMs).toBeLessThanOrEqual(linkSilenceMaxMs + guestDialTimeoutMs + 1_000);
  const again = await delivered(clientOf(address).execute(wish, never));
  expect(again.bytes.toString()).toBe("four\nmore\n");
});
