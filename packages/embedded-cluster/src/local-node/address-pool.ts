import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";

/** The port of a real kubelet: the one that a node listens on. */
const claimPort = 10_250;
const claimAttempts = 256;
const firstHost = 2;
const lastHost = 254;
const perBlock = lastHost - firstHost + 1;

interface Block {
  readonly prefix: string;
  readonly claim: Server;
}

/**
 * Loopback addresses for pods, one each, that no other node on this machine gives out: a node owns `127.x.y.0/24` by
 * listening on `127.x.y.1:10250`, which the kernel allows once and releases when the process dies.
 */
export class AddressPool {
  readonly #blocks: Block[];
  readonly #taken = new Set<string>();
  /** Where the search for the next free address begins: one that was given back is used again last. */
  #next = 0;
  #growing: Promise<void> | undefined;

  private constructor(first: Block) {
    this.#blocks = [first];
  }

  /** Claims the first block. */
  static async claim(): Promise<AddressPool> {
    return new AddressPool(await claimBlock());
  }

  /** The node's own address. */
  get hostIp(): string {
    return `${this.#blocks[0]?.prefix}.1`;
  }

  /** Tells whether no other living node gives this address out. */
  async isOurs(address: string): Promise<boolean> {
    const prefix = prefixOf(address);
    if (this.#blocks.some((block) => block.prefix === prefix)) return true;
    const claim = await listen(`${prefix}.1`).catch(() => undefined); // somebody's
    await new Promise((resolve) => (claim === undefined ? resolve(undefined) : claim.close(resolve)));
    return claim !== undefined;
  }

  /** Takes an address that nobody holds, claiming another block when all are taken. */
  async take(): Promise<string> {
    for (;;) {
      const free = this.#findFree();
      if (free !== undefined) {
        this.#taken.add(free);
        return free;
      }
      this.#growing ??= this.#grow().finally(() => {
        this.#growing = undefined;
      });
      await this.#growing;
    }
  }

  /** Gives an address back, and with the last one of a further block the block. */
  giveBack(address: string): void {
    this.#taken.delete(address);
    const prefix = prefixOf(address);
    const at = this.#blocks.findIndex((block) => block.prefix === prefix);
    if (at < 1 || [...this.#taken].some((other) => prefixOf(other) === prefix)) return;
    const [block] = this.#blocks.splice(at, 1);
    block?.claim.close();
    const begin = at * perBlock;
    if (this.#next >= begin + perBlock) this.#next -= perBlock;
    else if (this.#next >= begin) this.#next = begin % (this.#blocks.length * perBlock);
  }

  /** Gives all blocks up. */
  async close(): Promise<void> {
    await Promise.all(this.#blocks.map((block) => new Promise((resolve) => block.claim.close(resolve))));
  }

  #findFree(): string | undefined {
    const total = this.#blocks.length * perBlock;
    for (let step = 0; step < total; step++) {
      const index = (this.#next + step) % total;
      const block = this.#blocks[Math.floor(index / perBlock)];
      const address = `${block?.prefix}.${firstHost + (index % perBlock)}`;
      if (this.#taken.has(address)) continue;
      this.#next = (index + 1) % total;
      return address;
    }
    return undefined;
  }

  async #grow(): Promise<void> {
    this.#blocks.push(await claimBlock());
  }
}

function prefixOf(address: string): string {
  return address.slice(0, address.lastIndexOf("."));
}

async function claimBlock(): Promise<Block> {
  let last: unknown;
  for (let attempt = 0; attempt < claimAttempts; attempt++) {
    const prefix = `127.${randomInt(1, 255)}.${randomInt(0, 256)}`; // 127.0.x.y is the host's own
    try {
      return { prefix, claim: await listen(`${prefix}.1`) };
    } catch (error) {
      last = error; // taken by another node, most likely: try another block
    }
  }
  throw new Error(
    `No block of loopback addresses could be claimed: port ${claimPort} of 127.x.y.1 is refused everywhere`,
    {
      cause: last,
    },
  );
}

function listen(host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject);
    server.listen({ host, port: claimPort, exclusive: true }, () => {
      server.removeListener("error", reject);
      server.on("error", () => undefined); // a failed accept concerns nobody: the claim is the listening itself
      resolve(server);
    });
  });
}
