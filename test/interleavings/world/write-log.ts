import type { SentRequest } from "./api-transport.ts";
import { type CallRecord, currentCall } from "./calls.ts";

/** A write that a replica composed, and for whom. */
export interface SentWrite {
  readonly request: SentRequest;
  readonly call: CallRecord | undefined;
  readonly replica: number;
  /** The server's version when it was sent. */
  readonly revision: number;
  /** Of a POST or patch of a Sandbox. */
  readonly writtenBy: string | undefined;
  readonly epoch: string | undefined;
}

/** What every replica has sent to the cluster. */
export class WriteLog {
  readonly writes: SentWrite[] = [];

  note(request: SentRequest, replica: number, revision: number): void {
    if (request.method === "GET") return;
    const written = annotationsIn(request.body);
    this.writes.push({
      request,
      call: currentCall(),
      replica,
      revision,
      writtenBy: written.get("holdfast.dev/written-by"),
      epoch: written.get("sandbox.namzu.ai/holder-epoch"),
    });
  }

  /** The write that left this mark; undefined: none of ours. */
  of(writtenBy: string | undefined): SentWrite | undefined {
    return writtenBy === undefined ? undefined : this.writes.find((write) => write.writtenBy === writtenBy);
  }

  ofRequest(request: SentRequest): SentWrite | undefined {
    return this.writes.find((write) => write.request === request);
  }

  deletes(plural: string): readonly SentWrite[] {
    return this.writes.filter(({ request }) => request.method === "DELETE" && request.plural === plural);
  }
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
  for (const { op, path, value } of body as readonly { op: string; path: string; value?: unknown }[]) {
    if (op !== "add" || !path.startsWith(root)) continue;
    if (path === root) for (const [key, text] of Object.entries(value as Record<string, string>)) found.set(key, text);
    else
      found.set(
        path
          .slice(root.length + 1)
          .replaceAll("~1", "/")
          .replaceAll("~0", "~"),
        String(value),
      );
  }
  return found;
}
