import { describe, expect, it } from "vitest";
import { FileStreams } from "./file-streams.ts";

describe("streams of files", () => {
  it("are 64 at once; one more is refused with its setting and not begun, and one that ends, or fails, makes room", async () => {
    const streams = new FileStreams();
    const ends = Array.from({ length: 64 }, () => Promise.withResolvers<void>());
    const running = ends.map(({ promise }) => streams.run(() => promise));
    let begun = false;
    const more = () =>
      streams.run(async () => {
        begun = true;
      });
    const refusal = { reason: "STREAM_CAPACITY", metadata: { limit: "64", setting: "fileStreamsMax" } };
    await expect(more()).rejects.toMatchObject(refusal);
    expect(begun).toBe(false);
    ends[0]?.resolve();
    await running[0];
    await more();
    expect(begun).toBe(true);
    ends[1]?.reject(new Error("broken"));
    await expect(running[1]).rejects.toThrow("broken");
    const room = Promise.withResolvers<void>();
    const two = [streams.run(() => room.promise), streams.run(() => room.promise)];
    await expect(more()).rejects.toMatchObject(refusal);
    for (const { resolve } of [...ends, room]) resolve();
    await Promise.all([...two, ...running.filter((_, at) => at !== 1)]);
  });
});
