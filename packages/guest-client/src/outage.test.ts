import { linkLastSignMs, linkSilenceMaxMs, reattachWindowMs } from "@holdfast/contract";
import { LinkLost, PeerSilent } from "@holdfast/guest-link";
import { describe, expect, it } from "vitest";
import { Outage } from "./outage.ts";

const lostBy = (cause: unknown): LinkLost => new LinkLost("the stream's connection closed before its end", cause);

describe("B45 an outage", () => {
  it.each([
    ["with a reset, when it was noticed", new Error("ECONNRESET"), 0],
    ["with the silence that ended the link", new PeerSilent("silent", linkSilenceMaxMs), linkSilenceMaxMs],
    ["no earlier than a sign of life was asked for", new PeerSilent("no sign", linkLastSignMs), linkLastSignMs],
  ])("began %s", (_, cause, silentMs) => {
    const outage = new Outage(lostBy(cause), 100_000);
    expect(outage.leftMs(100_000)).toBe(Math.max(0, reattachWindowMs - silentMs));
    expect(outage.seconds(100_000)).toBe(silentMs / 1_000);
  });
});
