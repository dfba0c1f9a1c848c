import type { DescService } from "@bufbuild/protobuf";
import { toldLimits } from "@holdfast/contract";
import manifest from "../package.json" with { type: "json" };

/** What the service says of itself. */
export interface ServerInfo {
  readonly version: string;
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  readonly counters: ServerCounters;
}

/** What this process holds right now; all return to zero when nobody uses it. */
export interface ServerCounters {
  readonly handles: number;
  readonly calls: number;
  readonly streams: number;
  /** Sessions that are followed through this process. */
  readonly attachments: number;
  readonly guestConnections: number;
  /** Watches of one workspace, and of the inventory. */
  readonly watchers: number;
}

/** Who is asked for the counters. */
export interface CounterSources {
  readonly registry: { readonly size: number };
  readonly admission: { readonly inProgress: number; readonly streams: number };
  readonly guests: { readonly connections: number; readonly attachments: number };
  readonly watches: readonly { readonly watchers: number }[];
}

/** The names by which clients know what is served. */
const featureNames: Readonly<Record<string, string>> = {
  "holdfast.v1.WorkspaceService": "workspaces",
  "holdfast.v1.ExecutionService": "executions",
  "holdfast.v1.SessionService": "sessions",
  "holdfast.v1.FileService": "files",
  "holdfast.v1.PortService": "ports",
  "holdfast.v1.InventoryService": "inventory",
};

/** Describes a service that serves these; asked within a call, which the counters leave out. */
export function serverInfo(
  served: Iterable<DescService>,
  { registry, admission, guests, watches }: CounterSources,
): ServerInfo {
  return {
    version: manifest.version,
    features: [...served].flatMap(({ typeName }) => featureNames[typeName] ?? []).sort(),
    limits: toldLimits,
    counters: {
      handles: registry.size,
      calls: Math.max(0, admission.inProgress - 1),
      streams: admission.streams,
      attachments: guests.attachments,
      guestConnections: guests.connections,
      watchers: watches.reduce((count, { watchers }) => count + watchers, 0),
    },
  };
}
