import type { Duplex } from "node:stream";
import { type Logger, pino } from "pino";
import { startApiCore } from "../api-server/api-core.ts";
import { openMemoryDatabase } from "../api-server/store/database.ts";
import { type HistoryLimits, ObjectStore } from "../api-server/store/object-store.ts";
import { type Clock, systemClock } from "../clock.ts";
import { guestAgentImage } from "../default-template.ts";
import { FaultPlan } from "../faults/fault-plan.ts";
import type { Faults } from "../faults/faults.ts";
import { faultyApi } from "../faults/faulty-api.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { type SandboxController, startSandboxController } from "../sandbox-controller/sandbox-controller.ts";
import { seed } from "../seed.ts";
import { countedApi } from "./counted-api.ts";
import { type MemoryListener, openMemoryListener } from "./memory-listener.ts";
import { severableApi } from "./severable-api.ts";
import { type StandInNode, startStandInNode } from "./stand-in-node.ts";

export interface MemoryClusterOptions {
  /** What stamps, pauses, delays and retries go by; a manual one makes them the test's. */
  readonly clock?: Clock;
  /** `none`: the test writes what a kubelet would. `stepped` (the default): nothing happens to a pod but by its word. */
  readonly node?: "none" | "stepped" | "auto";
  /** False: no controller runs until `startController`. */
  readonly controller?: boolean;
  readonly addressOf?: (pod: KubeObject) => string;
  readonly history?: HistoryLimits;
  readonly log?: Logger;
}

/** An API server and a Sandbox controller in memory: no socket, no disk, a few milliseconds from start to stop. */
export interface MemoryCluster {
  /** The API as this caller sees it: the name is what fault rules know it by. */
  api(by?: string): ResourceApi;
  /**
   * A connection to the API as HTTP/1.1 without TLS, for a client's own transport (`createConnection` of an http.Agent).
   * Its bearer token is `memoryToken`; `by` is what fault rules know the caller by.
   */
  connect(by?: string): Duplex;
  readonly faults: Faults;
  /** Throws where there is none. */
  readonly node: StandInNode;
  /** The version of the last change. */
  readonly revision: number;
  /** Forgets the change log: whoever resumes a watch or a list from before gets 410. */
  compact(): void;
  /** Resolves when nothing moves any more: what is still open waits for time, for a gate, or for the test. */
  settle(): Promise<void>;
  /** Ends the controller as a kill does: it sends nothing more; what it had sent and is held may still be carried out. */
  killController(): Promise<void>;
  /** Starts a controller, which lists everything anew. Rejects if one runs. */
  startController(): Promise<void>;
  stop(): Promise<void>;
}

const silent = pino({ level: "silent" });
const defaultHistory: HistoryLimits = { changes: 20_000, bytes: 64 * 1024 * 1024 };
/** How many turns of the event loop without a sign of life are taken for rest. */
const quietTurns = 4;

/** Starts the cluster with the namespace `default` and its default SandboxTemplate. */
export async function startMemoryCluster(options: MemoryClusterOptions = {}): Promise<MemoryCluster> {
  const { clock = systemClock, log = silent, node: nodeMode = "stepped" } = options;
  const now = (): Date => new Date(clock.now());
  const store = new ObjectStore(openMemoryDatabase(), options.history ?? defaultHistory);
  const core = startApiCore({ store, log, now, sweepsEvents: false });
  const plan = new FaultPlan(clock);
  const counted = countedApi(core.api);
  const api = (by: string): ResourceApi => faultyApi(counted.api, plan, by);
  await seed(core.api, guestAgentImage);

  const { addressOf } = options;
  const placing = addressOf === undefined ? {} : { addressOf };
  const { node: rules } = plan;
  const nodeOptions = { api: api("node"), clock, log, rules, auto: nodeMode === "auto", ...placing };
  const node = nodeMode === "none" ? undefined : await startStandInNode(nodeOptions);

  let listener: MemoryListener | undefined;
  let controller: { readonly running: SandboxController; readonly sever: () => void } | undefined;
  const startController = async (): Promise<void> => {
    if (controller !== undefined) throw new Error("A controller runs already.");
    const severable = severableApi(api("controller"));
    const running = await startSandboxController({ api: severable.api, log, clock });
    controller = { running, sever: severable.sever };
  };
  const killController = async (): Promise<void> => {
    const killed = controller;
    controller = undefined;
    killed?.sever();
    await killed?.running.stop();
  };
  if (options.controller !== false) await startController();

  return {
    api: (by = "client") => api(by),
    connect: (by = "client") => {
      listener ??= openMemoryListener({ registry: core.registry, faults: plan, log, now });
      return listener.connect(by);
    },
    faults: plan,
    get node() {
      if (node === undefined) throw new Error("This cluster was started without a node.");
      return node;
    },
    get revision() {
      return core.registry.revision;
    },
    compact: core.compact,
    settle: async () => {
      let seen = "";
      for (let quiet = 0; quiet < quietTurns; quiet++) {
        await new Promise((resolve) => setImmediate(resolve));
        const signs = `${core.registry.revision} ${counted.moves} ${core.isTidy}`;
        if (signs !== seen) quiet = 0;
        seen = signs;
      }
    },
    startController,
    killController,
    stop: async () => {
      plan.stop();
      listener?.stop();
      await killController();
      await node?.stop();
      core.close();
    },
  };
}
