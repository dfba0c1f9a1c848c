import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Location } from "../location.ts";
import { write } from "../print.ts";
import type { Session } from "../program.ts";
import type { Content } from "./source.ts";

/** Writes the content: whole under the target's name, or the old file stays. */
export async function writeTarget(session: Session, target: Location, content: Content): Promise<void> {
  if (target.t === "standard") {
    for await (const chunk of content.bytes) await write(chunk);
  } else if (target.t === "local") {
    await writeLocal(target.path, content);
  } else {
    await writeRemote(session, target, content);
  }
}

async function writeLocal(path: string, content: Content): Promise<void> {
  const standing = await stat(path).catch(unlessAbsent);
  if (standing?.isDirectory()) throw new Error(`${path} is a directory`);
  // A device or a pipe (/dev/null, /dev/stdout) is written to, and a link is written through: a file must not take its place.
  if (standing === undefined) await replaceLocal(path, content);
  else if (standing.isFile()) await replaceLocal(await realpath(path), content);
  else await pipeline(content.bytes, createWriteStream(path, { flags: "w" }));
}

async function replaceLocal(path: string, { bytes, mode }: Content): Promise<void> {
  // Of its own length: the name of the file may be as long as a name can be.
  const temporary = join(dirname(path), `.holdfast-${randomBytes(8).toString("hex")}`);
  // A workspace does not make programs here that run as their owner.
  const file = await open(temporary, "wx", (mode ?? 0o644) & 0o777);
  try {
    for await (const chunk of bytes) await file.writeFile(chunk);
    await file.sync();
    await file.close();
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await file.close();
    await rm(temporary, { force: true });
    throw error;
  }
}

function unlessAbsent(error: unknown): undefined {
  if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  await directory.sync().finally(() => directory.close());
}

async function writeRemote(
  { connection, signal }: Session,
  { workspaceId, path }: Extract<Location, { t: "workspace" }>,
  { bytes, sizeBytes, mode }: Content,
): Promise<void> {
  async function* requests() {
    const start = {
      workspaceId,
      path,
      makeParents: true,
      ...(mode === undefined ? {} : { mode }),
      ...(sizeBytes === undefined ? {} : { size: BigInt(sizeBytes) }),
    };
    yield { part: { case: "start" as const, value: start } };
    for await (const data of bytes) yield { part: { case: "data" as const, value: data } };
  }
  await connection.files.writeFile(requests(), { signal });
}
