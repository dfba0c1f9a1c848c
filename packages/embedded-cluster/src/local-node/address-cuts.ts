import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { trustedEnv } from "./isolation.ts";

const run = promisify(execFile);

/** This machine has no way to cut a pod's address. */
export class CannotCutAddressError extends Error {
  constructor(address: string, cause: unknown) {
    super(
      `The address ${address} cannot be cut on this machine, and was not: that takes root, the command tc and a kernel with its bpf classifier.`,
      { cause },
    );
    this.name = "CannotCutAddressError";
  }
}

/** tc(8) refuses a second one by this word. */
const isThereAlready = /Exclusivity|exists/i;

/**
 * Cuts addresses off: a filter on the loopback interface drops every packet from and to one. All pods of a machine are
 * reached over that interface, and nothing else of the machine has these addresses. The empty place for filters (clsact)
 * stays: who took it away could take another node's filter with it.
 */
export class AddressCuts {
  /** How often each address is cut. */
  readonly #cuts = new Map<string, number>();
  #tail: Promise<void> = Promise.resolve();

  /** Takes back what a killed node left: `isOurs` tells that no other living node has the address. */
  static async open(isOurs: (address: string) => Promise<boolean>): Promise<AddressCuts> {
    for (const { address, preference } of await filters().catch(() => [])) // no tc: nobody has cut anything
      if (await isOurs(address)) await remove(preference);
    return new AddressCuts();
  }

  /** Cuts the address. Resolves, when it is so, with the way to mend it. Throws CannotCutAddressError. */
  async cut(address: string): Promise<() => Promise<void>> {
    await this.#inTurn(async () => {
      const cuts = this.#cuts.get(address) ?? 0;
      if (cuts === 0) await this.#add(address);
      this.#cuts.set(address, cuts + 1);
    });
    let mended: Promise<void> | undefined;
    return () => {
      mended ??= this.#inTurn(() => this.#mendOnce(address));
      return mended;
    };
  }

  /** Mends every address that is still cut. */
  async close(): Promise<void> {
    await this.#inTurn(async () => {
      for (const address of [...this.#cuts.keys()]) {
        this.#cuts.set(address, 1);
        await this.#mendOnce(address);
      }
    });
  }

  async #add(address: string): Promise<void> {
    try {
      await tc("qdisc", "add", "dev", "lo", "clsact").catch((error: unknown) => {
        if (!isThereAlready.test(String(error))) throw error;
      });
      const program = dropping(address);
      await tc("filter", "add", "dev", "lo", "egress", "protocol", "ip", "bpf", "da", "bytecode", program);
    } catch (error) {
      throw new CannotCutAddressError(address, error);
    }
  }

  async #mendOnce(address: string): Promise<void> {
    const cuts = this.#cuts.get(address) ?? 0;
    if (cuts > 1) {
      this.#cuts.set(address, cuts - 1);
      return;
    }
    if (!this.#cuts.delete(address)) return; // the node stopped and mended it
    for (const filter of await filters()) if (filter.address === address) await remove(filter.preference);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const after = this.#tail.then(work);
    this.#tail = after.catch(() => undefined); // told to whoever asked
    return after;
  }
}

/**
 * The filter's program in tc's own form: drops (2) a packet whose source, at byte 26, or destination, at byte 30, is the
 * address; leaves every other one to whatever comes next (-1).
 */
export function dropping(address: string): string {
  const number = numberOf(address);
  return `6,32 0 0 26,21 2 0 ${number},32 0 0 30,21 0 1 ${number},6 0 0 2,6 0 0 4294967295`;
}

function numberOf(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
}

interface CutFilter {
  readonly address: string;
  readonly preference: string;
}

/** The filters of this form that there are, whoever made them. */
async function filters(): Promise<readonly CutFilter[]> {
  const { stdout } = await tc("filter", "show", "dev", "lo", "egress");
  return stdout.split("\n").flatMap((line) => {
    const [, preference] = /\bpref (\d+) bpf\b/.exec(line) ?? [];
    const [, program, number] = /bytecode '(6,32 0 0 26,21 2 0 (\d+),[^']*)'/.exec(line) ?? [];
    if (preference === undefined || number === undefined) return [];
    const address = addressOf(Number(number));
    return program === dropping(address) ? [{ address, preference }] : [];
  });
}

async function remove(preference: string): Promise<void> {
  await tc("filter", "del", "dev", "lo", "egress", "pref", preference);
}

function tc(...args: readonly string[]): Promise<{ stdout: string }> {
  return run("tc", args, { env: trustedEnv, encoding: "utf8", timeout: 10_000 });
}
