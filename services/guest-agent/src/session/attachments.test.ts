import { attachmentKeptMs, attachmentsRememberedMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { type AttachMode, Attachments } from "./attachments.ts";

function stage() {
  const clock = new HandClock();
  const attended: string[] = [];
  const attachments = new Attachments({
    sessionId: "s",
    clock,
    write: (bytes) => bytes.length,
    onAttended: (now, byClient) => attended.push(now ? "attended" : byClient ? "left by client" : "left"),
  });
  const raises: ((why: AnsweredError) => void)[] = [];
  const take = (mode: AttachMode, attachmentId = "") => {
    const reasons: string[] = [];
    const stream = { end: (why: AnsweredError) => reasons.push(why.reason) };
    const whileHeld = (end: (why: AnsweredError) => void): (() => void) => {
      raises.push(end);
      return () => raises.splice(raises.indexOf(end), 1);
    };
    const attachment = attachments.take({ mode, attachmentId, stream, whileHeld });
    return { attachment, stream, reasons };
  };
  return { clock, attended, attachments, raises, take };
}

const put = { sequence: 1, data: new Uint8Array(1), admit: () => undefined, signal: new AbortController().signal };

describe("attachments", () => {
  it("G18 a new exclusive one ends the old with a reason that names it, on its stream and for every later call", async () => {
    const { attachments, take } = stage();
    const first = take("exclusive");
    await first.attachment.input?.put(put);
    const second = take("exclusive");
    expect(first.reasons).toEqual(["ATTACHMENT_DISPLACED"]);
    expect(() => attachments.requireExclusive(first.attachment.id)).toThrow(
      expect.objectContaining({
        reason: "ATTACHMENT_DISPLACED",
        metadata: expect.objectContaining({ by: second.attachment.id, last_sequence: "1" }),
      }),
    );
    await expect(first.attachment.input?.put({ ...put, sequence: 2 })).rejects.toMatchObject({
      reason: "ATTACHMENT_DISPLACED",
    });
    expect(() => take("exclusive", first.attachment.id)).toThrow(
      expect.objectContaining({ reason: "ATTACHMENT_DISPLACED" }),
    );
    expect(second.reasons).toEqual([]);
  });

  it("G18 observers are any number, displace nobody and may not write", () => {
    const { attachments, take, attended } = stage();
    const exclusive = take("exclusive");
    const observers = Array.from({ length: 10 }, () => take("observe"));
    expect([exclusive, ...observers].flatMap(({ reasons }) => reasons)).toEqual([]);
    expect(() => attachments.requireExclusive(observers[0]?.attachment.id ?? "")).toThrow(
      expect.objectContaining({ reason: "INVALID_REQUEST" }),
    );
    expect(attended).toEqual(["attended"]);
  });

  it("G19 one outlives its stream by 60 s and goes on with its input; then it is over", async () => {
    const { attachments, clock, take } = stage();
    const { attachment, stream } = take("exclusive");
    await attachment.input?.put(put);
    attachments.leave(attachment, stream, false);
    expect(attachments.isAttended).toBe(false);
    clock.pass(attachmentKeptMs - 1);
    const again = take("exclusive", attachment.id);
    expect(again.attachment).toMatchObject({ id: attachment.id });
    expect(again.attachment.input?.next).toBe(2);
    attachments.leave(attachment, stream, false); // The former stream says that it is over, late.
    expect(attachments.isAttended).toBe(true);
    attachments.leave(attachment, again.stream, false);
    clock.pass(attachmentKeptMs);
    expect(() => take("exclusive", attachment.id)).toThrow(expect.objectContaining({ reason: "ATTACHMENT_NOT_FOUND" }));
    expect(clock.pending).toBe(0);
  });

  it("G19 one that is taken up on another stream ends the stream it had", () => {
    const { take } = stage();
    const first = take("exclusive");
    const again = take("exclusive", first.attachment.id);
    expect(first.reasons).toEqual(["ATTACHMENT_DISPLACED"]);
    expect(again.attachment.id).toBe(first.attachment.id);
    expect(() => take("observe", first.attachment.id)).toThrow(expect.objectContaining({ reason: "INVALID_REQUEST" }));
  });

  it("G5a a raise ends the exclusive one, with or without a stream, and no observer", () => {
    const { attachments, raises, take } = stage();
    const observer = take("observe");
    const exclusive = take("exclusive");
    const why = new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "superseded");
    for (const raise of [...raises]) raise(why);
    expect([exclusive.reasons, observer.reasons]).toEqual([["HOLDER_EPOCH_SUPERSEDED"], []]);
    expect(() => attachments.requireExclusive(exclusive.attachment.id)).toThrow(why);
    const alone = take("exclusive");
    attachments.leave(alone.attachment, alone.stream, false);
    for (const raise of [...raises]) raise(why);
    expect(() => take("exclusive", alone.attachment.id)).toThrow(why);
    expect(raises).toEqual([]);
  });

  it("G17 says when nobody attends to the program any more, and whether its client wished that", () => {
    const { attachments, attended, take } = stage();
    const first = take("exclusive");
    attachments.leave(first.attachment, first.stream, false);
    const again = take("exclusive", first.attachment.id);
    attachments.leave(again.attachment, again.stream, true);
    const displaced = take("exclusive");
    take("exclusive");
    attachments.leave(displaced.attachment, displaced.stream, true); // It is nobody's any more.
    expect(attended.join(", ")).toBe("attended, left, attended, left by client, attended, left, attended");
  });

  it("G17 a detach by name is said like a stream's end: by its client, or not; an observer's is nobody's", () => {
    const { attachments, attended, take } = stage();
    const observer = take("observe");
    expect(attachments.detach(observer.attachment.id, true)).toBe("observe");
    expect(attended).toEqual([]);
    for (const byClient of [true, false]) {
      const { attachment, reasons } = take("exclusive");
      expect(attachments.detach(attachment.id, byClient)).toBe("exclusive");
      expect(reasons).toHaveLength(1);
    }
    expect(attended).toEqual(["attended", "left by client", "attended", "left"]);
  });

  it("remembers a bounded number of those without a stream, and of those that are over", () => {
    const { attachments, take } = stage();
    const observers = Array.from({ length: attachmentsRememberedMax + 10 }, () => take("observe"));
    for (const { attachment, stream } of observers) attachments.leave(attachment, stream, false);
    expect(() => take("observe", observers[0]?.attachment.id)).toThrow(
      expect.objectContaining({ reason: "ATTACHMENT_NOT_FOUND" }),
    );
    expect(take("observe", observers.at(-1)?.attachment.id).attachment.id).toBe(observers.at(-1)?.attachment.id);
  });
});
