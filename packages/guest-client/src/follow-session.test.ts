import { create, toBinary } from "@bufbuild/protobuf";
import { AttachSessionResponseSchema } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { Deadline } from "@holdfast/async";
import { type AttachmentId, reattachWindowMs, type SessionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { AnsweredError, LinkProtocolError, NothingSent } from "@holdfast/guest-link";
import { ManualClock, settleTasks } from "@holdfast/testkit";
import { type AttachSessionWish, GuestLost, LeaveRunning, type SessionEvent } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { FollowedSession } from "./follow-session.ts";
import { lost, type Opened, ScriptedLink } from "./scripted-link.testing.ts";

const bootId = "boot-1";
const wish: AttachSessionWish = {
  sessionId: "s" as SessionId,
  fromOffset: 0,
  mode: "exclusive",
  size: { columns: 80, rows: 24 },
  attachmentId: undefined,
  expectedBootId: undefined,
};
const session = { sessionId: "s", startedAt: { seconds: 1n, nanos: 0 } };

function say({ listener }: Opened, event: object): void {
  const message = create(AttachSessionResponseSchema, { event: event as { case: undefined } });
  listener.message(Buffer.from(toBinary(AttachSessionResponseSchema, message)));
}

const attach = (opened: Opened, offset = 0, attachmentId = "a-1"): void =>
  say(opened, {
    case: "attached",
    value: { attachmentId, nextInputSequence: 1n, bootId, offset: BigInt(offset), session },
  });
const gap = (opened: Opened, from: number, to: number): void =>
  say(opened, { case: "gap", value: { from: BigInt(from), to: BigInt(to) } });
const exit = (opened: Opened, nextOffset: number): void => {
  say(opened, {
    case: "exited",
    value: { exit: { outcome: { case: "code", value: 0 } }, nextOffset: BigInt(nextOffset) },
  });
  opened.listener.over(undefined);
};

const attached =
  (then: (opened: Opened) => void) =>
  (opened: Opened): void => {
    attach(opened);
    then(opened);
  };

/** The attachment, followed; its events as they come. */
function followed(scripted: ScriptedLink, changes: Partial<AttachSessionWish> = {}) {
  const clock = new ManualClock();
  const client = new AbortController();
  const told: string[] = [];
  const attachment = new FollowedSession(scripted.link, clock, { ...wish, ...changes }, client.signal, {
    over: () => void told.push("over"),
    unreached: () => void told.push("unreached"),
  });
  const events: SessionEvent[] = [];
  const done = (async () => {
    for await (const event of attachment.events()) events.push(event);
  })();
  done.catch(() => undefined);
  return { clock, client, told, attachment, events, done };
}

describe("an attachment whose link is lost", () => {
  it("B27 is taken up at the byte after the last, as the same attachment, on the same agent process, and is not resized again", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth === 1) {
        attach(opened);
        opened.listener.data(Buffer.from("abc"));
        gap(opened, 3, 10);
        opened.listener.data(Buffer.from("de"));
        opened.listener.over(lost());
      } else {
        attach(opened, 12);
        opened.listener.data(Buffer.from("f"));
        exit(opened, 13);
      }
    };
    const { clock, events, done, told } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(events).toMatchObject([
      { t: "attached", attachmentId: "a-1", offset: 0 },
      { t: "output", offset: 0 },
      { t: "gap", from: 3, to: 10 },
      { t: "output", offset: 10 },
      { t: "output", offset: 12 },
      { t: "exited", nextOffset: 13 },
    ]);
    expect(scripted.opened[0]?.request).toMatchObject({
      fromOffset: 0n,
      attachmentId: "",
      expectedBootId: "",
      size: { columns: 80, rows: 24 },
    });
    const again = scripted.opened[1]?.request;
    expect(again).toMatchObject({ fromOffset: 12n, attachmentId: "a-1", expectedBootId: bootId });
    expect(again?.size).toBeUndefined();
    expect(told).toEqual([]);
  });

  it("begins where a gap ended, and is a gap's end that the reader has had", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      attach(opened, nth === 1 ? 0 : 7);
      if (nth === 1) {
        gap(opened, 0, 7);
        opened.listener.over(lost());
      } else exit(opened, 7);
    };
    const { clock, done } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(scripted.opened[1]?.request).toMatchObject({ fromOffset: 7n });
  });

  it("is resized again, on the agent process that OPEN went to, where it is not known to have been attached", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth === 1) return opened.listener.over(lost());
      attach(opened);
      exit(opened, 0);
    };
    const { clock, done } = followed(scripted);
    await clock.runUntilSettled(done);
    expect(scripted.opened[1]?.request).toMatchObject({ expectedBootId: bootId, size: { columns: 80, rows: 24 } });
  });

  it.each([
    ["another guest is at the address", new NothingSent("token-refused", "not this guest")],
    ["its client of the guest is closed", new NothingSent("closed", "closed")],
    ["the guest speaks another protocol now", new NothingSent("protocol-mismatch", "version 9")],
  ])("L39 is lost, never not reached, where %s", async (_what, failure) => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth > 1) throw failure;
      attach(opened);
      opened.listener.over(lost());
    };
    const { clock, done } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toBeInstanceOf(GuestLost);
    expect(scripted.opened).toHaveLength(2);
  });

  it("L44 says that the guest was not reached, and ends as detached, with where to go on, when the window is over", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth > 1) throw new NothingSent("no-connection", "nobody");
      attach(opened);
      opened.listener.data(Buffer.from("abc"));
      opened.listener.over(lost());
    };
    const { clock, done, told } = followed(scripted);
    const began = clock.monotonicMs();
    await expect(clock.runUntilSettled(done)).rejects.toMatchObject({
      reason: "SESSION_DETACHED",
      metadata: { session_id: "s", offset: "3", attachment_id: "a-1", boot_id: bootId },
    });
    expect(clock.monotonicMs() - began).toBeGreaterThanOrEqual(reattachWindowMs);
    expect(told.length).toBeGreaterThan(5);
    expect(new Set(told)).toEqual(new Set(["unreached"]));
  });

  it("L44 has the whole window again after a link that lasted, though its program said nothing on it", async () => {
    const scripted = new ScriptedLink();
    let nobody = false;
    scripted.onOpen = (opened, nth) => {
      if (nobody) throw new NothingSent("no-connection", "nobody");
      if (nth === 1) attach(opened);
      if (nth === 1) opened.listener.over(lost());
    };
    const { clock, done, events } = followed(scripted);
    await clock.advance(1_000);
    await clock.advance(reattachWindowMs - 5_000);
    nobody = true;
    scripted.opened[1]?.listener.over(lost());
    await clock.advance(reattachWindowMs - 5_000);
    scripted.onOpen = (opened) => {
      attach(opened);
      exit(opened, 0);
    };
    await clock.runUntilSettled(done);
    expect(events.map(({ t }) => t)).toEqual(["attached", "exited"]);
  });

  it.each([1, 2])(
    "is not asked for again of a guest that broke the protocol, on its stream number %i",
    async (breaks) => {
      const scripted = new ScriptedLink();
      scripted.onOpen = (opened, nth) => {
        attach(opened);
        opened.listener.over(lost(nth === breaks ? new LinkProtocolError("nonsense") : undefined));
      };
      const { clock, done } = followed(scripted);
      await expect(clock.runUntilSettled(done)).rejects.toBeInstanceOf(GuestLost);
      expect(scripted.opened).toHaveLength(breaks);
    },
  );
});

describe("a guest that does not keep to the protocol of an attachment", () => {
  it.each<[string, (opened: Opened) => void]>([
    ["attaches at another offset", (opened) => attach(opened, 5)],
    ["sends output before it attached", ({ listener }) => listener.data(Buffer.from("abc"))],
    ["tells a gap that begins elsewhere", attached((opened) => gap(opened, 1, 5))],
    ["tells a gap of nothing", attached((opened) => gap(opened, 0, 0))],
    ["ends elsewhere than its output", attached((opened) => exit(opened, 1))],
    ["calls the stream complete without an end", attached(({ listener }) => listener.over(undefined))],
  ])("is not believed when it %s", async (_what, misbehave) => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => {
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
});

describe("G5 a guest that floods a reader that stands still with events of no bytes", () => {
  it("is held back", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => {
      attach(opened);
      for (let at = 0; at < 10_000; at += 1) gap(opened, at, at + 1);
    };
    const { link } = scripted;
    const follower = { over: () => undefined, unreached: () => undefined };
    const client = new AbortController();
    const events = new FollowedSession(link, new ManualClock(), wish, client.signal, follower).events();
    await events.next();
    expect(scripted.opened[0]?.asked).toEqual(["pause"]);
    await events.return();
  });
});

describe("G18 an attachment that the guest ends by force", () => {
  it("is let go at once, also where its reader stands still; a lost link lets nothing go", async () => {
    const scripted = new ScriptedLink();
    const displaced = new AnsweredError("ATTACHMENT_DISPLACED", "another client");
    scripted.onOpen = (opened, nth) => {
      attach(opened);
      if (nth === 1) opened.listener.over(lost());
    };
    const { clock, done, told } = followed(scripted);
    await clock.advance(1_000);
    expect(told).toEqual([]);
    scripted.opened[1]?.listener.ending?.(displaced);
    expect(told).toEqual(["over"]);
    scripted.opened[1]?.listener.over(displaced);
    await expect(clock.runUntilSettled(done)).rejects.toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
  });

  it("is let go when its stream ends with the guest's answer, told before or not", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => opened.listener.over(new AnsweredError("SESSION_NOT_FOUND", "none"));
    const { clock, done, told } = followed(scripted);
    await expect(clock.runUntilSettled(done)).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
    expect(told).toEqual(["over"]);
  });
});

describe("L25 an attachment that is released", () => {
  const why = new HoldfastError("WORKSPACE_SUSPENDED", { message: "is being suspended" });
  const release = async ({ attachment, clock }: ReturnType<typeof followed>, scripted: ScriptedLink): Promise<void> => {
    using within = new Deadline(clock, 1_000);
    await attachment.release(why, scripted.link, within);
  };

  it("ends with that reason while no link stands, without waiting for the next try; the guest is told by its id", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened, nth) => {
      if (nth > 1) throw new NothingSent("no-connection", "nobody");
      attach(opened);
      opened.listener.over(lost());
    };
    const run = followed(scripted);
    await run.clock.advance(10_000);
    const asked = scripted.opened.length;
    await release(run, scripted);
    await settleTasks();
    await expect(run.done).rejects.toBe(why);
    expect(scripted.opened).toHaveLength(asked);
    expect(scripted.called).toMatchObject([
      { method: "DetachSession", request: { sessionId: "s", attachmentId: "a-1", clientClosed: true } },
    ]);
    expect(run.told.at(-1)).toBe("over");
  });

  it("ends its stream only when the guest has answered, or did not in time", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => attach(opened);
    const answer = Promise.withResolvers<object>();
    scripted.onCall = () => answer.promise;
    const run = followed(scripted);
    await settleTasks();
    const released = release(run, scripted);
    await settleTasks();
    expect(scripted.opened[0]?.ended).toEqual([]);
    answer.resolve({});
    await released;
    expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: true }]);
    await expect(run.done).rejects.toBe(why);
  });

  it("while it is being attached ends the stream that comes about, and asks for no other", async () => {
    const scripted = new ScriptedLink();
    const opening = Promise.withResolvers<void>();
    scripted.onOpen = () => opening.promise;
    const run = followed(scripted);
    await settleTasks();
    await release(run, scripted);
    opening.resolve();
    await expect(run.done).rejects.toBe(why);
    expect(scripted.opened.map(({ ended }) => ended)).toEqual([[{ clientClosed: true }]]);
    expect(scripted.called).toEqual([]);
  });
});

describe("G17 L44 a client that goes", () => {
  it.each([
    [new Error("gone"), true],
    [new LeaveRunning(), false],
  ])("with %s says on its stream whether it wished the end: %s", async (why, wished) => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => attach(opened);
    const { client, done, events } = followed(scripted);
    await settleTasks();
    expect(events).toHaveLength(1);
    client.abort(why);
    await expect(done).rejects.toBe(why);
    expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: wished }]);
  });
});

describe("an attachment that is taken up from elsewhere", () => {
  it("names its id, offset and agent process from the first", async () => {
    const scripted = new ScriptedLink();
    scripted.onOpen = (opened) => {
      attach(opened, 5, "a-9");
      exit(opened, 5);
    };
    const { clock, done } = followed(scripted, { fromOffset: 5, attachmentId: "a-9" as AttachmentId, mode: "observe" });
    await clock.runUntilSettled(done);
    expect(scripted.opened[0]?.request).toMatchObject({ fromOffset: 5n, attachmentId: "a-9", mode: 2 });
  });
});
