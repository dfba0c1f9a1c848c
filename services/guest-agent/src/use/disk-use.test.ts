import { describe, expect, it } from "vitest";
import { diskUseOf } from "./disk-use.ts";

const facts = { frsize: 4096n, blocks: 100n, bfree: 40n, bavail: 35n, files: 10n, ffree: 4n };

describe("how full a disk is", () => {
  it("is told in bytes, of blocks of the size that they are counted in, and what a reserve leaves to programs", () => {
    expect(diskUseOf(facts)).toEqual({
      totalBytes: 409_600n,
      usedBytes: 245_760n,
      availableBytes: 143_360n,
      totalInodes: 10n,
      usedInodes: 6n,
    });
  });

  it("is told beyond what a number holds", () => {
    const large = { ...facts, blocks: 2n ** 51n + 1n, bfree: 2n ** 51n };
    expect(diskUseOf(large)).toMatchObject({ totalBytes: 2n ** 63n + 4096n, usedBytes: 4096n });
  });

  it.each([
    ["no blocks", { ...facts, blocks: 0n, bfree: 0n, bavail: 0n }],
    ["no size of blocks", { ...facts, frsize: 0n }],
    ["more free than there is", { ...facts, bfree: 101n }],
  ])("is not known of a file system with %s", (_, nonsense) => {
    expect(diskUseOf(nonsense)).toBeUndefined();
  });

  it.each([
    ["no bound of inodes", { ...facts, files: 0n, ffree: 0n }],
    ["more free inodes than inodes", { ...facts, ffree: 11n }],
  ])("leaves inodes out with %s", (_, odd) => {
    const told = diskUseOf(odd);
    expect(told).toMatchObject({ totalBytes: 409_600n });
    expect(told).not.toHaveProperty("totalInodes");
    expect(told).not.toHaveProperty("usedInodes");
  });

  it.each([-1n, 2n ** 64n - 1n])(
    "leaves nothing to programs where the reserve itself is in use: %s blocks",
    (bavail) => {
      expect(diskUseOf({ ...facts, bavail })).toMatchObject({ availableBytes: 0n });
    },
  );
});
