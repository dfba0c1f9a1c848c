import { AnsweredError, LinkLost, LinkProtocolError, NothingSent } from "@holdfast/guest-link";
import { GuestLost, GuestNotReached } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { guestErrorOf } from "./guest-errors.ts";

describe("L39 what a failure of the link proves", () => {
  it.each([
    ["no-connection", "no-connection"],
    ["capacity", "no-connection"],
    ["closed", "no-connection"],
    ["name-unresolvable", "name-unresolvable"],
    ["token-refused", "token-refused"],
    ["protocol-mismatch", "protocol-mismatch"],
  ] as const)("that nothing was sent: %s is not reached (%s)", (why, as) => {
    const error = guestErrorOf(new NothingSent(why, "in its words"));
    expect(error).toBeInstanceOf(GuestNotReached);
    expect(error).toMatchObject({ why: as, message: "in its words" });
  });

  it.each([new LinkLost("cut"), new LinkProtocolError("nonsense")])("nothing: %s is lost", (failure) => {
    expect(guestErrorOf(failure)).toBeInstanceOf(GuestLost);
  });

  it("an answer: it keeps its reason, its words and its facts; one of a newer release names itself", () => {
    const facts = { execution_id: "x" };
    expect(guestErrorOf(new AnsweredError("EXECUTION_NOT_FOUND", "none", facts))).toMatchObject({
      reason: "EXECUTION_NOT_FOUND",
      message: "none",
      metadata: facts,
    });
    expect(guestErrorOf(new AnsweredError("A_NEWER_REASON", "new", facts))).toMatchObject({
      reason: "INTERNAL_ERROR",
      metadata: { ...facts, guest_reason: "A_NEWER_REASON" },
    });
  });

  it("nothing of what is not the link's: a deadline or a cancellation stays what it is", () => {
    const own = new Error("the caller's own");
    expect(guestErrorOf(own)).toBe(own);
  });
});
