import { readAccess } from "./suite/access.ts";
import type { Part } from "./suite/conformance-case.ts";
import { detectParts } from "./suite/detect-parts.ts";
import { HttpClient } from "./suite/http-client.ts";
import { openNamespace } from "./suite/open-namespace.ts";
import type { StageOptions } from "./suite/stage.ts";

/** A cluster that the suite may run against. */
export interface Target extends AsyncDisposable {
  readonly parts: ReadonlySet<Part>;
  readonly stage: StageOptions;
}

export interface TargetWish {
  readonly kubeconfig: string;
  /** Absent: one is made, and goes afterwards. */
  readonly namespace?: string | undefined;
  readonly image?: string | undefined;
  readonly nodePath?: string | undefined;
  readonly compact?: (() => Promise<void>) | undefined;
}

export const caseDeadlineMs = 45_000;

/** Reaches a cluster and finds out what it has. */
export async function openTarget(wish: TargetWish): Promise<Target> {
  const client = new HttpClient(readAccess(wish.kubeconfig));
  const own = wish.namespace === undefined ? await openNamespace(client) : undefined;
  const stage: StageOptions = {
    client,
    namespace: own?.name ?? wish.namespace ?? "",
    image: wish.image ?? "holdfast.local/guest-agent:embedded",
    nodePath: wish.nodePath ?? "/opt/holdfast/node",
    compact: wish.compact,
    deadlineMs: caseDeadlineMs,
  };
  return {
    stage,
    parts: await detectParts(stage),
    [Symbol.asyncDispose]: async () => {
      await own?.close();
      client.close();
    },
  };
}
