import { create, toBinary } from "@bufbuild/protobuf";
import { GapReason, OutputChannel, StartExecutionResponseSchema } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { cancelAskAgainMs, type ExecutionId, reattachWindowMs } from "@holdfast/contract";
import { AnsweredError, LinkProtocolError, NothingSent } from "@holdfast/guest-link";
import { ManualClock, settleTasks } from "@holdfast/testkit";
import { type ExecutionEvent, type ExecutionWish, GuestLost, LeaveRunning } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { executed } from "./execute.ts";
import { FollowedCommand } from "./follow-command.ts";
import { lost, type Opened, ScriptedLink } from "./scripted-link.testing.ts";

const bootId = "boot-1";
const wish: ExecutionWish = {
  executionId: "x" as ExecutionId,
  command: "true",
  args: [],
  cwd: undefined,
  env: {},
  stdin: undefined,
  timeoutMs: undefined,
  maxOutputBytes: undefined,
  retainOutput: false,
  onDisconnect: "detach",
  drainMs: undefined,
  leftovers: "keep",
};

function say({ listener }: Opened, event: object): void {
  const message = create(StartExecutionResponseSchema, { event: { event: event as { case: undefined } } });
  listener.message(Buffer.from(toBinary(StartExecutionResponseSchema, message)));
}

const start = (opened: Opened): void => say(opened, { case: "started", value: { executionId: "x", bootId } });
const output = (opened: Opened, offset: number, text: string): void => {
  say(opened, { case: "segment", value: { offset: BigInt(offset), channel: OutputChannel.STDOUT } });
  opened.listener.data(Buffer.from(text));
};
const exit = (opened: Opened, outputBytes: number): void => {
  const outcome = { case: "code", value: 0 };
  say(opened, { case: "exited", value: { outcome, outputBytes: BigInt(outputBytes) } });
  opened.listener.over(undefined);
};

/** The command, followed; its events as they come. */
function followed(scripted: ScriptedLink, changes: Partial<ExecutionWish> = {}) {
  const clock = new ManualClock();
  const client = new AbortController();
  let unreached = 0;
  const command = new FollowedCommand(scripted.link, clock, executed({ ...wish, ...changes }), client.signal, () => {
    unreached += 1;
  });
  const events: ExecutionEvent[] = [];
  const iterator = command.events();
  const done = (async () => {
    for await (const event of { [Symbol.asyncIterator]: () => iterator }) events.push(event);
  })();
  done.catch(() => undefined);
  return { clock, client, events, iterator, done, unreached: () => unreached };
}

describe("a command whose link is lost", () => {
  it("B27 is taken up at the byte after the last, with what is left of its bound, on the same agent process", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      start(opened);
      if (nth === 1) {
        output(opened, 0, "abc");
        say(opened, { case: "gap", value: { from: 3n, to: 10n } });
        output(opened, 10, "de");
        opened.listener.over(lost());
      } else {
        output(opened, 12, "f");
        exit(opened, 13);
      }
    };
    const { clock, events, done } = followed(scripted, { maxOutputBytes: 100 });
    await clock.runUntilSettled(done);
    expect(events).toMatchObject([
      { t: "started" },
      { t: "output", offset: 0 },
      { t: "gap", from: 3, to: 10 },
      { t: "output", offset: 10 },
      { t: "output", offset: 12 },
      { t: "exited" },
    ]);
    expect(scripted.opened.map(({ method }) => method)).toEqual(["StartExecution", "FollowExecution"]);
    expect(scripted.opened[0]?.request).toMatchObject({ fromOffset: 0n, expectedBootId: "", maxOutputBytes: 100n });
    expect(scripted.opened[1]?.request).toMatchObject({
      fromOffset: 12n,
      expectedBootId: bootId,
      maxOutputBytes: 95n,
      asClient: true,
    });
  });

  it("B33 is started again under its id, on the agent process that OPEN went to, until it is known to exist", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth < 3) opened.listener.over(lost());
      else {
        start(opened);
        exit(opened, 0);
      }
    };
    const { clock, done } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(scripted.opened.map(({ method }) => method)).toEqual(Array(3).fill("StartExecution"));
    expect(scripted.opened.map(({ request }) => request.expectedBootId)).toEqual(["", bootId, bootId]);
  });

  it("G5a is only read from there on where another holder has the guest, and nobody's place is taken", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth === 2) opened.listener.over(new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "another"));
      else start(opened);
      if (nth === 1) opened.listener.over(lost());
      if (nth === 3) exit(opened, 0);
    };
    const { clock, events, done } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(events.map(({ t }) => t)).toEqual(["started", "exited"]);
    expect(scripted.opened[2]).toMatchObject({ method: "FollowExecution", request: { asClient: false } });
  });

  it("G5a is told the refusal where it turns out that it was never started, and not before it was looked for", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth === 1) opened.listener.over(lost());
      if (nth === 2) opened.listener.over(new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "another"));
      if (nth === 3) opened.listener.over(new AnsweredError("EXECUTION_NOT_FOUND", "none"));
    };
    const { clock, done } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(scripted.opened.map(({ method }) => method)).toEqual([
      "StartExecution",
      "StartExecution",
      "FollowExecution",
    ]);
  });

  it("G5a is not looked for where its first start was refused: it cannot exist", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => opened.listener.over(new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "another"));
    const { clock, done } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(scripted.opened).toHaveLength(1);
  });

  it("ends with any other answer of the guest, at once", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth === 1) start(opened);
      opened.listener.over(nth === 1 ? lost() : new AnsweredError("EXECUTION_NOT_FOUND", "none"));
    };
    const { clock, done } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
    expect(scripted.opened).toHaveLength(2);
  });

  it.each([
    ["the agent was restarted", new AnsweredError("GUEST_RESTARTED", "another process"), 0],
    ["another guest is at the address", new NothingSent("token-refused", "not this guest"), 0],
    ["its client of the guest is closed", new NothingSent("closed", "closed"), 0],
  ])("L39 is lost, never not reached, where %s", async (_what, failure, unreachedTimes) => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth > 1) throw failure;
      start(opened);
      opened.listener.over(lost());
    };
    const { clock, done, unreached } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toBeInstanceOf(GuestLost);
    expect(scripted.opened).toHaveLength(2);
    expect(unreached()).toBe(unreachedTimes);
  });

  it("L44 says each time that the guest was not reached, and goes on asking", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth > 1 && nth < 5) throw new NothingSent("no-connection", "nobody");
      start(opened);
      if (nth === 1) opened.listener.over(lost());
      else exit(opened, 0);
    };
    const { clock, done, unreached } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(unreached()).toBe(3);
  });

  it("L44 has the whole window again after a link that lasted, though its command said nothing on it", async () => {
    const scripted = new ScriptedLink();
    let nobody = false;
    scripted.onOpen = (opened, nth) => {
      if (nobody) throw new NothingSent("no-connection", "nobody");
      if (nth === 1) start(opened);
      if (nth === 1) opened.listener.over(lost());
    };
    const { clock, done, events } = followed(scripted);
    await clock.advance(1_000);
    expect(scripted.opened).toHaveLength(2);
    await clock.advance(reattachWindowMs - 5_000);
    nobody = true;
    scripted.opened[1]?.listener.over(lost());
    await clock.advance(reattachWindowMs - 5_000);
    scripted.onOpen = (opened) => {
      start(opened);
      exit(opened, 0);
    };
    await clock.runUntilSettled(done);
    expect(events.map(({ t }) => t)).toEqual(["started", "exited"]);
  });

  it.each([1, 2])("is not asked again of a guest that broke the protocol, on its stream number %i", async (breaks) => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      start(opened);
      opened.listener.over(lost(nth === breaks ? new LinkProtocolError("nonsense") : undefined));
    };
    const { clock, done } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toBeInstanceOf(GuestLost);
    expect(scripted.opened).toHaveLength(breaks);
  });

  it("is taken up where a gap ended, though nothing came behind it", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      start(opened);
      if (nth === 1) {
        say(opened, { case: "gap", value: { from: 0n, to: 7n } });
        opened.listener.over(lost());
      } else exit(opened, 7);
    };
    const { clock, done } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(scripted.opened[1]?.request).toMatchObject({ fromOffset: 7n });
  });

  it("L44 has the whole window again once the guest has said something, however soon it was lost again", async () => {
    const scripted = new ScriptedLink();
    const nobody = (): never => {
      throw new NothingSent("no-connection", "nobody");
    };
    let turn: (opened: Opened) => void = (opened) => {
      start(opened);
      opened.listener.over(lost());
    };
    scripted.onOpen = (opened) => turn(opened);
    const { clock, done, events } = followed(scripted);
    await clock.advance(1);
    turn = nobody;
    await clock.advance(reattachWindowMs - 5_000);
    turn = (opened) => {
      turn = nobody;
      start(opened);
      output(opened, 0, "a");
      opened.listener.over(lost());
    };
    await clock.advance(reattachWindowMs - 5_000);
    turn = (opened) => {
      start(opened);
      exit(opened, 1);
    };
    await clock.runUntilSettled(done);
    expect(events.map(({ t }) => t)).toEqual(["started", "output", "exited"]);
  });
});

describe("G7 a guest whose account of the output does not add up", () => {
  it.each<[string, (opened: Opened) => void]>([
    [
      "repeats a byte",
      (opened) => {
        output(opened, 0, "abc");
        output(opened, 2, "c");
        exit(opened, 4);
      },
    ],
    [
      "skips a byte",
      (opened) => {
        output(opened, 1, "bc");
        exit(opened, 2);
      },
    ],
    [
      "tells a gap that begins elsewhere",
      (opened) => {
        say(opened, { case: "gap", value: { from: 1n, to: 5n } });
        exit(opened, 5);
      },
    ],
    [
      "tells a gap of nothing",
      (opened) => {
        say(opened, { case: "gap", value: { from: 0n, to: 0n } });
        exit(opened, 0);
      },
    ],
    [
      "does not say where the bytes behind a gap belong",
      (opened) => {
        output(opened, 0, "a");
        say(opened, { case: "gap", value: { from: 1n, to: 5n } });
        opened.listener.data(Buffer.from("b"));
        exit(opened, 6);
      },
    ],
    [
      "ends at another byte",
      (opened) => {
        output(opened, 0, "abc");
        exit(opened, 2);
      },
    ],
  ])("is not believed when it %s", async (_what, misbehave) => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => {
      start(opened);
      try {
        misbehave(opened);
      } catch (error) {
        opened.listener.over(lost(error)); // As the link does with what its listener throws.
      }
    };
    const { clock, done } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toBeInstanceOf(GuestLost);
    expect(scripted.opened).toHaveLength(1);
  });

  it("is told apart by stream and by the reason of a gap", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => {
      start(opened);
      say(opened, { case: "segment", value: { offset: 0n, channel: OutputChannel.STDERR } });
      opened.listener.data(Buffer.from("e"));
      say(opened, { case: "gap", value: { from: 1n, to: 5n, reason: GapReason.MAX_OUTPUT } });
      exit(opened, 5);
    };
    const { clock, done, events } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(events).toMatchObject([
      { t: "started" },
      { t: "output", stream: "stderr", offset: 0 },
      { t: "gap", from: 1, to: 5, reason: "max_output" },
      { t: "exited" },
    ]);
  });
});

describe("G6 L44 a client that goes", () => {
  const gone = new Error("gone");
  it.each([
    ["cancel", gone, true],
    ["detach", gone, false],
    ["cancel", new LeaveRunning(), false],
  ] as const)(
    "with onDisconnect %s and %s says on its stream that its command ends: %s",
    async (onDisconnect, why, ends) => {
      const scripted = new ScriptedLink();
      scripted.onOpen = start;
      const { client, done, events } = followed(scripted, { onDisconnect });
      await settleTasks();
      expect(events).toHaveLength(1);
      client.abort(why);
      await expect(done).rejects.toBe(why);
      expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: ends }]);
      expect(scripted.called).toEqual([]);
    },
  );

  it("says so at once, though it never comes back to read", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = start;
    const client = new AbortController();
    const run = executed({ ...wish, onDisconnect: "cancel" });
    const { link } = scripted;
    const events = new FollowedCommand(link, new ManualClock(), run, client.signal, () => undefined).events();
    await events.next();
    client.abort(gone);
    expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: true }]);
  });

  it("while its stream is being opened ends that, and nothing else", async () => {
    const scripted = new ScriptedLink();
    const opening = Promise.withResolvers<void>();
    scripted.onOpen = () => opening.promise;
    const { client, done } = followed(scripted, { onDisconnect: "cancel" });
    await settleTasks();
    client.abort(gone);
    opening.resolve();
    await expect(done).rejects.toBe(gone);
    expect(scripted.opened.map(({ ended }) => ended)).toEqual([[{ clientClosed: true }]]);
  });

  it("by reading no further ends its command as if it had aborted", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = start;
    const { link } = scripted;
    const never = new AbortController().signal;
    const command = new FollowedCommand(
      link,
      new ManualClock(),
      executed({ ...wish, onDisconnect: "cancel" }),
      never,
      () => undefined,
    );
    for await (const _event of command.events()) break;
    expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: true }]);
  });

  it.each([
    ["cancel", 3],
    ["detach", 0],
  ] as const)(
    "while no link stands, with onDisconnect %s, is told to the guest by a call, until it answers (%i calls)",
    async (onDisconnect, calls) => {
      const scripted = new ScriptedLink();
      scripted.onOpen = (opened, nth) => {
        if (nth > 1) throw new NothingSent("no-connection", "nobody");
        start(opened);
        opened.listener.over(lost());
      };
      scripted.onCall = (_called, nth) => {
        if (nth < 3) throw nth === 1 ? lost() : new NothingSent("no-connection", "nobody");
        throw new AnsweredError("EXECUTION_NOT_FOUND", "gone by now");
      };
      const { clock, client, done } = followed(scripted, { onDisconnect });
      await clock.advance(10);
      client.abort(gone);
      await expect(done).rejects.toBe(gone);
      await clock.advance(cancelAskAgainMs);
      expect(scripted.called).toHaveLength(calls);
      for (const { method, request } of scripted.called) {
        expect({ method, request }).toMatchObject({
          method: "CancelExecution",
          request: { executionId: "x", expectedBootId: bootId },
        });
      }
    },
  );

  it("is told to a guest that never answers for a bounded time", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth > 1) throw new NothingSent("no-connection", "nobody");
      start(opened);
      opened.listener.over(lost());
    };
    scripted.onCall = () => {
      throw new NothingSent("no-connection", "nobody");
    };
    const { clock, client } = followed(scripted, { onDisconnect: "cancel" });
    await clock.advance(10);
    client.abort(gone);
    await clock.advance(cancelAskAgainMs + 1_000);
    const calls = scripted.called.length;
    expect(calls).toBeGreaterThan(1);
    await clock.advance(cancelAskAgainMs);
    expect(scripted.called).toHaveLength(calls);
    expect(clock.pending).toBe(0);
  });
});

describe("G5 a command's reader", () => {
  it("that stands still holds its stream back, and lets it go on when it reads", async () => {
    const scripted = new ScriptedLink();
    const { link } = scripted;
    scripted.onOpen = (opened) => {
      start(opened);
      output(opened, 0, "x".repeat(1024 * 1024));
    };
    const never = new AbortController().signal;
    const events = new FollowedCommand(link, new ManualClock(), executed(wish), never, () => undefined).events();
    await events.next();
    expect(scripted.opened[0]?.asked).toEqual(["pause"]);
    for (let bytes = 0; bytes < 1024 * 1024; ) {
      const { value } = await events.next();
      if (value?.t !== "output") throw new Error("no output");
      bytes += value.data.length;
    }
    expect(scripted.opened[0]?.asked).toEqual(["pause", "resume"]);
    await events.return();
  });
});
