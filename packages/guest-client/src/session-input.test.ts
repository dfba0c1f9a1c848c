import { Deadline } from "@holdfast/async";
import type { AttachmentId, SessionId } from "@holdfast/contract";
import { AnsweredError, LinkProtocolError, NothingSent } from "@holdfast/guest-link";
import { ManualClock } from "@holdfast/testkit";
import { GuestLost, GuestNotReached } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { LinkedSessions } from "./linked-sessions.ts";
import { lost, ScriptedLink } from "./scripted-link.testing.ts";

const wish = {
  sessionId: "s" as SessionId,
  attachmentId: "a-1" as AttachmentId,
  sequence: 7,
  data: Buffer.from("ls\n"),
};
const nobody = () => new NothingSent("no-connection", "nobody");

/** The input, written to a guest that answers each time as is said; "taken" is its word that it has it. */
async function written(answers: readonly (Error | "taken")[], budgetMs = 60_000) {
  const scripted = new ScriptedLink();
  scripted.onCall = (_called, nth) => {
    const answer = answers[Math.min(nth, answers.length) - 1];
    if (answer === "taken") return { nextSequence: 8n };
    throw answer;
  };
  const clock = new ManualClock();
  const of = { attached: new Set<never>(), counts: { attachments: 0 }, unreached: () => undefined };
  const sessions = new LinkedSessions(scripted.link, clock, of);
  using within = new Deadline(clock, budgetMs);
  const outcome = await clock.runUntilSettled(sessions.write(wish, within)).catch((error: unknown) => error);
  return { outcome, called: scripted.called };
}

describe("G19 input to a session", () => {
  it("whose answer was lost is sent again as the same input, also past a guest that is not reached for a while", async () => {
    const { outcome, called } = await written([lost(), nobody(), lost(), "taken"]);
    expect(outcome).toEqual({ nextSequence: 8 });
    expect(called).toHaveLength(4);
    for (const { request } of called)
      expect(request).toMatchObject({ sequence: 7n, attachmentId: "a-1", data: wish.data });
  });

  it("L39 that was never sent is not reached, and not sent again", async () => {
    const { outcome, called } = await written([nobody()]);
    expect(outcome).toBeInstanceOf(GuestNotReached);
    expect(called).toHaveLength(1);
  });

  it.each(["token-refused", "closed"] as const)(
    "L39 that may have been taken is lost, whatever follows: %s",
    async (why) => {
      const { outcome, called } = await written([lost(), new NothingSent(why, "another, or none")]);
      expect(outcome).toBeInstanceOf(GuestLost);
      expect(called).toHaveLength(2);
    },
  );

  it("L39 that may have been taken is lost at the deadline, though the last try was not sent", async () => {
    const { outcome, called } = await written([lost(), nobody()], 1_000);
    expect(outcome).toBeInstanceOf(GuestLost);
    expect(called.length).toBeGreaterThan(5);
    expect(called.length).toBeLessThan(15);
  });

  it("ends with the guest's answer, also after a lost one", async () => {
    const { outcome } = await written([lost(), new AnsweredError("ATTACHMENT_DISPLACED", "another")]);
    expect(outcome).toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
  });

  it("is not sent again to a guest that broke the protocol", async () => {
    const { outcome, called } = await written([lost(new LinkProtocolError("nonsense"))]);
    expect(outcome).toBeInstanceOf(GuestLost);
    expect(called).toHaveLength(1);
  });
});
