import { open } from "node:fs/promises";
import { addAbortSignal } from "node:stream";
import { UsageError } from "../failure.ts";
import type { Location } from "../location.ts";
import type { Session } from "../program.ts";

/** What is copied. */
export interface Content {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Undefined when it is not known before. */
  readonly sizeBytes: number | undefined;
  /** Permission bits; undefined for a stream. */
  readonly mode: number | undefined;
}

/** Opens the file, so that one that is not there fails before anything is written. */
export async function openSource(session: Session, source: Location): Promise<Content> {
  if (source.t === "standard")
    return { bytes: addAbortSignal(session.signal, process.stdin), sizeBytes: undefined, mode: undefined };
  return source.t === "local" ? await openLocal(source.path) : await openRemote(session, source);
}

async function openLocal(path: string): Promise<Content> {
  const file = await open(path, "r");
  const info = await file.stat();
  if (!info.isFile()) {
    await file.close();
    throw new UsageError(`${path} is no regular file`);
  }
  return { bytes: file.createReadStream({ highWaterMark: 64 * 1024 }), sizeBytes: info.size, mode: info.mode & 0o7777 };
}

async function openRemote(
  { connection, signal }: Session,
  { workspaceId, path }: Extract<Location, { t: "workspace" }>,
): Promise<Content> {
  const events = connection.files.readFile({ workspaceId, path }, { signal })[Symbol.asyncIterator]();
  const first = await events.next();
  const opened = first.value?.event.case === "opened" ? first.value.event.value : undefined;
  if (!opened) throw new Error(`the service did not open ${path}`);
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (let next = await events.next(); !next.done; next = await events.next()) {
      if (next.value.event.case === "chunk") yield next.value.event.value.data;
    }
  }
  return { bytes: bytes(), sizeBytes: Number(opened.size), mode: opened.mode };
}
