import type { KubeObject } from "@holdfast/embedded-cluster/testing";
import type { SentRequest } from "./api-transport.ts";
import { type CallRecord, currentCall } from "./calls.ts";

/** What a call last saw of the object, and when it asked. */
export interface Seen {
  readonly object: KubeObject;
  /** The server's version when it was asked for. */
  readonly askedAt: number;
}

/** A write that a replica composed, and for whom. */
export interface SentWrite {
  readonly request: SentRequest;
  readonly call: CallRecord | undefined;
  readonly replica: number;
  /** The server's version when it was sent. */
  readonly revision: number;
  /** What it can have been composed from. */
  readonly from: Seen | undefined;
  /** Of a POST or patch of a Sandbox. */
  readonly writtenBy: string | undefined;
  readonly suspends: boolean;
  /** Undefined: none yet. Only `ok` and `refused` say what became of it. */
  answered: "ok" | "refused" | "lost" | undefined;
}

/** What every replica has sent to the cluster, and what it was told. */
export class WriteLog {
  readonly writes: SentWrite[] = [];
  readonly #seen = new Map<CallRecord | undefined, Seen>();

  sent(request: SentRequest, replica: number, revision: number): void {
    if (request.method === "GET") return;
    const call = currentCall();
    this.writes.push({
      request,
      call,
      replica,
      revision,
      from: this.#seen.get(call),
      writtenBy: annotationsIn(request.body).get("holdfast.dev/written-by"),
      suspends: isSuspend(request.body),
      answered: undefined,
    });
  }

  answered(
    request: SentRequest,
    how: "ok" | "refused" | "lost",
    askedAt: number,
    object: KubeObject | undefined,
  ): void {
    const write = this.writes.find((one) => one.request === request);
    if (write) write.answered = how;
    if (how === "ok" && request.plural === "sandboxes" && request.name !== "" && request.method !== "DELETE" && object)
      this.#see(currentCall(), { object, askedAt });
  }

  /** Of answers that overtook each other the newest counts. */
  #see(call: CallRecord | undefined, seen: Seen): void {
    const known = this.#seen.get(call);
    if (known && versionOf(known) > versionOf(seen)) return;
    this.#seen.set(call, seen);
  }

  /** The write that left this mark, and its repeats; none: it is not ours. */
  of(writtenBy: string | undefined): readonly SentWrite[] {
    return writtenBy === undefined ? [] : this.writes.filter((write) => write.writtenBy === writtenBy);
  }

  deletes(plural: string): readonly SentWrite[] {
    return this.writes.filter(({ request }) => request.method === "DELETE" && request.plural === plural);
  }
}

const versionOf = ({ object }: Seen): number => Number(object.metadata.resourceVersion);

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

function isSuspend(body: unknown): boolean {
  if (!Array.isArray(body)) return false;
  const operations = body as readonly Operation[];
  return operations.some(
    ({ op, path, value }) => op === "add" && path === "/spec/operatingMode" && value === "Suspended",
  );
}

function annotationsIn(body: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  if (!Array.isArray(body)) {
    const sent = body as
      | { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } }
      | undefined;
    for (const [key, value] of Object.entries(sent?.metadata?.annotations ?? {})) found.set(key, value);
    return found;
  }
  const root = "/metadata/annotations";
  for (const { op, path, value } of body as readonly Operation[]) {
    if (op !== "add" || !path.startsWith(root)) continue;
    if (path === root) for (const [key, text] of Object.entries(value as Record<string, string>)) found.set(key, text);
    else found.set(unescaped(path.slice(root.length + 1)), String(value));
  }
  return found;
}

const unescaped = (pointer: string): string => pointer.replaceAll("~1", "/").replaceAll("~0", "~");
