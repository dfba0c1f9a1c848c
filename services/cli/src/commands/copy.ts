import { mkdir, opendir, stat } from "node:fs/promises";
import { basename, dirname, join, posix } from "node:path";
import { FileType } from "@holdfast/api/holdfast/v1/file_pb";
import { type Content, openSource } from "../copy/source.ts";
import { writeTarget } from "../copy/target.ts";
import { UsageError } from "../failure.ts";
import { type Location, locationOf } from "../location.ts";
import { printable } from "../printable.ts";
import type { Session } from "../program.ts";
import { type Progress, progress, sizeWords } from "../progress.ts";

/** Copies one file, or with `recursive` a tree. Each file is whole under its name, or not there. */
export async function copy(session: Session, from: string, to: string, options: { readonly recursive?: true }) {
  const source = locationOf(from);
  const target = locationOf(to);
  if (source.t === "local" && target.t === "local") throw new UsageError("one side must be in a workspace: ID:PATH");
  if (source.t === "standard" && target.t === "standard") throw new UsageError("one side must be a file");
  using show = progress("copying");
  if (await isDirectory(session, source)) {
    if (!options.recursive) throw new UsageError(`${from} is a directory: copy it with --recursive`);
    if (target.t === "standard") throw new UsageError("a directory cannot be copied to a stream");
    await copyTree(session, source, await within(session, target, nameOf(source)), show);
  } else {
    await copyFile(session, source, await within(session, target, nameOf(source)), show);
  }
}

async function copyFile(session: Session, source: Location, target: Location, show: Progress): Promise<void> {
  const content = await openSource(session, source);
  await writeTarget(session, target, { ...content, bytes: counted(content, printable(nameOf(source)), show) });
}

/** Parents before children. What is neither file nor directory is left out, and said. */
async function copyTree(session: Session, source: Location, target: Location, show: Progress): Promise<void> {
  await makeDirectory(session, target);
  for await (const entry of entriesOf(session, source)) {
    const from = below(source, entry.name);
    const to = below(target, entry.name);
    if (entry.kind === "directory") await copyTree(session, from, to, show);
    else if (entry.kind === "file") await copyFile(session, from, to, show);
    else leaveOut(from);
  }
}

async function* counted({ bytes, sizeBytes }: Content, name: string, show: Progress): AsyncIterable<Uint8Array> {
  let done = 0;
  const of = sizeBytes === undefined ? "" : ` of ${sizeWords(sizeBytes)}`;
  for await (const chunk of bytes) {
    done += chunk.length;
    show.say(`${name}: ${sizeWords(done)}${of},`);
    yield chunk;
  }
}

interface Entry {
  readonly name: string;
  readonly kind: "file" | "directory" | "other";
}

async function* entriesOf({ connection, signal }: Session, directory: Location): AsyncIterable<Entry> {
  if (directory.t === "local") {
    for await (const entry of await opendir(directory.path)) {
      yield { name: entry.name, kind: entry.isDirectory() ? "directory" : entry.isFile() ? "file" : "other" };
    }
  } else if (directory.t === "workspace") {
    const { workspaceId, path } = directory;
    for await (const { files } of connection.files.listDirectory({ workspaceId, path }, { signal })) {
      for (const { path: found, type, rawName } of files) {
        const name = posix.basename(found);
        const known = rawName.length === 0;
        if (known && type === FileType.DIRECTORY) yield { name, kind: "directory" };
        else yield { name, kind: known && type === FileType.REGULAR ? "file" : "other" };
      }
    }
  }
}

async function isDirectory({ connection, signal }: Session, location: Location): Promise<boolean> {
  if (location.t === "standard") return false;
  if (location.t === "local") return (await stat(location.path)).isDirectory();
  const { workspaceId, path } = location;
  const { file } = await connection.files.statFile({ workspaceId, path }, { signal });
  return file?.type === FileType.DIRECTORY;
}

/** The target itself; or, where it is a directory that stands, a file of that name in it. */
async function within(session: Session, target: Location, name: string): Promise<Location> {
  if (target.t === "standard") return target;
  if (target.path.endsWith("/") || target.path === ".") return below(target, name);
  try {
    return (await isDirectory(session, target)) ? below(target, name) : target;
  } catch {
    return target; // It does not stand yet, or the write itself will say what is wrong.
  }
}

async function makeDirectory({ connection, signal }: Session, location: Location): Promise<void> {
  if (location.t === "local") await mkdir(location.path, { recursive: true });
  if (location.t !== "workspace") return;
  const { workspaceId, path } = location;
  await connection.files.makeDirectory({ workspaceId, path, makeParents: true }, { signal });
}

function below(location: Location, name: string): Location {
  // A name that a guest gave must not lead out of the folder that the user named.
  if (name === "" || name === "." || name === ".." || name.includes("/")) {
    throw new UsageError(`the workspace names a file that cannot be copied: "${printable(name)}"`);
  }
  if (location.t === "local") return { t: "local", path: join(location.path, name) };
  if (location.t === "workspace") return { ...location, path: posix.join(location.path, name) };
  return location;
}

/** A copy that is not whole says so by its exit code too. */
function leaveOut(location: Location): void {
  console.error(`holdfast: left out, neither file nor directory: ${printable(pathOf(location))}`);
  process.exitCode = 1;
}

function pathOf(location: Location): string {
  return location.t === "standard" ? nameOf(location) : location.path;
}

function nameOf(location: Location): string {
  if (location.t === "standard") return "standard-input";
  const name = location.t === "local" ? basename(location.path) : posix.basename(location.path);
  return name === "." || name === "" ? basename(dirname(location.path)) || "workspace" : name;
}
