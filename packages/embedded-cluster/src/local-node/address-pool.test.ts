import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { AddressPool } from "./address-pool.ts";

describe("AddressPool", () => {
  const open: AddressPool[] = [];
  const claim = async () => {
    const pool = await AddressPool.claim();
    open.push(pool);
    return pool;
  };
  afterEach(() => Promise.all(open.splice(0).map((pool) => pool.close())));

  it("gives out one address once, never the node's own and never one of 127.0", async () => {
    const pool = await claim();
    const taken = await Promise.all(Array.from({ length: 200 }, () => pool.take()));
    expect(new Set(taken).size).toBe(200);
    expect(taken).not.toContain(pool.hostIp);
    for (const address of taken) expect(address).toMatch(/^127\.[1-9]\d{0,2}\.\d{1,3}\.\d{1,3}$/);
  });

  it("uses an address that was given back last of all", async () => {
    const pool = await claim();
    const first = await pool.take();
    pool.giveBack(first);
    const others = await Promise.all(Array.from({ length: 252 }, () => pool.take()));
    expect(others).not.toContain(first);
    expect(await pool.take()).toBe(first);
  });

  it("claims another block when one is full", async () => {
    const pool = await claim();
    const taken = await Promise.all(Array.from({ length: 300 }, () => pool.take()));
    expect(new Set(taken).size).toBe(300);
    expect(new Set(taken.map((address) => address.split(".").slice(0, 3).join("."))).size).toBe(2);
  });

  it("gives a further block back with its last address, and goes on giving out what was given back longest ago", async () => {
    const pool = await claim();
    const taken = await Promise.all(Array.from({ length: 300 }, () => pool.take()));
    const further = taken.filter((address) => !address.startsWith(pool.hostIp.replace(/\d+$/, "")));
    const other = await claim();
    const [first = "", ...others] = further;
    for (const address of others) pool.giveBack(address);
    expect(await isClaimed(first)).toBe(true);
    pool.giveBack(first);
    await expect.poll(() => isClaimed(first)).toBe(false);
    expect(await other.isOurs(first)).toBe(true);
    const [early = "", late = ""] = taken;
    pool.giveBack(early);
    pool.giveBack(late);
    expect([await pool.take(), await pool.take()]).toEqual([early, late]);
    expect(await pool.take()).not.toBe(early);
  });

  it("shares no block with another pool of this machine", async () => {
    const pools = await Promise.all(Array.from({ length: 20 }, claim));
    expect(new Set(pools.map((pool) => pool.hostIp)).size).toBe(20);
  });
});

/** Whether somebody listens where the block's owner does. */
function isClaimed(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(10_250, address.replace(/\d+$/, "1"));
    const answer = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.once("connect", () => answer(true));
    socket.once("error", () => answer(false));
  });
}
