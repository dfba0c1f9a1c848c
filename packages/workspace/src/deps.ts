import type { Clock } from "@holdfast/async";
import type { WorkspaceId } from "@holdfast/contract";
import type { HandleNews } from "./events/workspace-event.ts";
import type { Cluster } from "./ports/cluster.ts";
import type { GuestDialler } from "./ports/guest.ts";
import type { WorkspaceView } from "./view.ts";

/** Everything that the domain reaches outside itself. */
export interface WorkspaceDeps {
  readonly cluster: Cluster;
  readonly guests: GuestDialler;
  readonly clock: Clock;
  /** A fresh value that nobody else has: it marks a write so that its landing can be proved. */
  readonly randomId: () => string;
  readonly policy: WorkspacePolicy;
  readonly log: DomainLog;
  /** Told what each handle comes to, as it does; it must not throw. Undefined: nobody listens. */
  readonly told?: ((id: WorkspaceId, news: HandleNews, view: () => WorkspaceView) => void) | undefined;
}

/** What the operator decided, the same for every workspace of the service. */
export interface WorkspacePolicy {
  /** Used when an Open names none. */
  readonly defaultTemplate: string | undefined;
  /** Which kind of volume the cluster port accepts as the disk; told in errors. */
  readonly disk: "block" | "filesystem";
  /** `report` logs a privileged guest instead of refusing it. */
  readonly probe: "refuse" | "report";
  /** `verify` refuses to create, adopt or wake: this release cannot verify the agent port's policy itself. */
  readonly ingress: "verify" | "unverified";
  /** Whether a guest is dialled at its pod's address, or by the name of its Service. Undefined: its pod's address. */
  readonly agentAddress?: "pod-ip" | "service" | undefined;
  /** When set, a standing workspace must have it. */
  readonly runtimeClassName: string | undefined;
}

/** Where the domain says what operators should know. */
export interface DomainLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}
