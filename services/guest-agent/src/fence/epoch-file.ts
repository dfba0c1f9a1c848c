import { constants } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";

/** Where the guest's epoch outlives the agent process. */
export interface EpochStore {
  /** Keeps it durably. Throws EpochNotKept. */
  write(epoch: bigint): Promise<void>;
}

/** The number was not made durable. `inPlace`: the next agent process may read it all the same. */
export class EpochNotKept extends Error {
  readonly inPlace: boolean;
  constructor(inPlace: boolean, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = "EpochNotKept";
    this.inPlace = inPlace;
  }
}

const fileName = "holder-epoch";
const pattern = /^(0|[1-9]\d{0,15})\n$/;

/** The epoch in a file of the pod's own storage: the old number or the new one, whenever the agent or the machine dies. */
export class EpochFile implements EpochStore {
  readonly #directory: string;
  readonly #path: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.#path = join(directory, fileName);
  }

  /** 0 only when none was ever kept. Throws when it cannot be read or is no epoch: a guest that has forgotten must not serve. */
  async read(): Promise<bigint> {
    let text: string;
    try {
      text = await readFile(this.#path, "latin1");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return 0n;
      throw unreadable(this.#path, error instanceof Error ? error.message : String(error));
    }
    const digits = pattern.exec(text)?.[1];
    if (digits === undefined || BigInt(digits) > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw unreadable(this.#path, `it holds ${JSON.stringify(text.slice(0, 40))}, which is no epoch`);
    }
    return BigInt(digits);
  }

  /** Temporary file, fsync, rename, fsync of the directory. */
  async write(epoch: bigint): Promise<void> {
    let inPlace = false;
    try {
      const temporary = `${this.#path}.new`;
      const file = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o600);
      try {
        await file.writeFile(`${epoch}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, this.#path);
      inPlace = true;
      const directory = await open(this.#directory, constants.O_RDONLY | constants.O_DIRECTORY);
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    } catch (error) {
      throw new EpochNotKept(inPlace, error);
    }
  }
}

function unreadable(path: string, why: string): Error {
  return new Error(
    `HOLDER_EPOCH_UNREADABLE: the guest's epoch in ${path} cannot be read (${why}). A guest that does not know who holds it does not ` +
      "serve. Replace the pod: a new one begins unfenced, and the control plane fences it.",
  );
}
