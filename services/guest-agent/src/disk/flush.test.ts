import { describe, expect, it } from "vitest";
import { Flush } from "./flush.ts";

describe("flush", () => {
  it("G25 says the kernel's error when the disk does", async () => {
    const flush = new Flush(async () => {
      throw new Error("syncfs: EIO");
    });
    await expect(flush.run(1_000)).rejects.toMatchObject({
      reason: "FLUSH_UNCONFIRMED",
      metadata: { cause: "syncfs: EIO" },
    });
  });

  it("G25 is unconfirmed once its time is over, and the call that the kernel still owes is the only one", async () => {
    const calls: PromiseWithResolvers<void>[] = [];
    const flush = new Flush(() => {
      const call = Promise.withResolvers<void>();
      calls.push(call);
      return call.promise;
    });
    await expect(flush.run(5)).rejects.toMatchObject({ reason: "FLUSH_UNCONFIRMED" });
    await expect(flush.run(5)).rejects.toMatchObject({ reason: "FLUSH_UNCONFIRMED" });
    expect(calls).toHaveLength(1);
    // What was written after the first call began is not covered by it: a second one is made.
    const later = flush.run(10_000);
    calls[0]?.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls).toHaveLength(2);
    calls[1]?.resolve();
    expect(await later).toBeGreaterThanOrEqual(0);
  });
});
