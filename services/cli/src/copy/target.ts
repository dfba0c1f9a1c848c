import { randomBytes } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
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

async function writeLocal(path: string, { bytes, mode }: Content): Promise<void> {
  const temporary = `${path}.holdfast-${randomBytes(4).toString("hex")}`;
  const file = await open(temporary, "wx", mode ?? 0o644);
  try {
    for await (const chunk of bytes) await file.writeFile(chunk);
    const standing = await stat(path).catch(() => undefined);
    if (standing?.isDirectory()) throw new Error(`${path} is a directory`);
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
