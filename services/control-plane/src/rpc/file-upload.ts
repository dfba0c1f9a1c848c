import type { WriteFileRequest, WriteFileStart } from "@holdfast/api/holdfast/v1/file_pb";
import { HoldfastError } from "@holdfast/errors";
import { drainingError } from "./interceptors/admission.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";

/** The requests of one WriteFile: `start`, then the content, which can be pulled once. */
export class FileUpload {
  readonly start: WriteFileStart;
  readonly #rest: AsyncIterator<WriteFileRequest>;
  #pulled = false;
  #isWhole = false;

  private constructor(start: WriteFileStart, rest: AsyncIterator<WriteFileRequest>) {
    this.start = start;
    this.#rest = rest;
  }

  /** Reads the start; throws INVALID_REQUEST when something else comes first. */
  static async begin(requests: AsyncIterable<WriteFileRequest>): Promise<FileUpload> {
    const rest = requests[Symbol.asyncIterator]();
    const first = await rest.next();
    if (first.done) throw outOfOrder("the client sent nothing");
    const { part } = first.value;
    if (part.case !== "start") throw outOfOrder("`data` came before `start`");
    return new FileUpload(part.value, rest);
  }

  /** The bytes as they come. Throws INVALID_REQUEST at a second start. */
  async *content(): AsyncGenerator<Uint8Array, void> {
    if (this.#pulled) throw new Error("the content was pulled before");
    this.#pulled = true;
    for (let next = await this.#rest.next(); !next.done; next = await this.#rest.next()) {
      const { part } = next.value;
      if (part.case === "start") throw outOfOrder("`start` came twice");
      if (part.case === "data" && part.value.byteLength > 0) yield part.value;
    }
    this.#isWhole = true;
  }

  /** What the write ends with when the service drains. */
  endedByDrain(): HoldfastError {
    if (this.#isWhole) return changeLetGo(this.start.path);
    return drainingError(`${this.start.path} was not written, and what stood there stands as it was`);
  }
}

/** What a change of a file ends with when the service drains after it was sent. */
export function changeLetGo(path: string): HoldfastError {
  return new HoldfastError("FILE_OUTCOME_UNKNOWN", {
    message: `This process is stopping and let the call go before the change of ${path} was confirmed. Either the old state stands, or the new one: never a mixture. Look at the file before changing it again.`,
    metadata: { path, why: "service_draining" },
  });
}

function outOfOrder(what: string): HoldfastError {
  return invalidRequest([{ field: "part", description: `${what}; one \`start\` comes first, then \`data\`` }]);
}
