import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { FaultPlan } from "../faults/fault-plan.ts";
import type { ResourceApi } from "../resource-api.ts";
import { startApiCore } from "./api-core.ts";
import { keepCredentials, writePrivately } from "./credentials.ts";
import { ApiListener } from "./http/api-listener.ts";
import { FaultConsole } from "./http/fault-console.ts";
import type { ReadLog } from "./http/log-handler.ts";
import { kubeconfigText } from "./kubeconfig.ts";
import type { Registry } from "./registry/registry.ts";
import { openDatabase } from "./store/database.ts";
import { type HistoryLimits, ObjectStore } from "./store/object-store.ts";

export interface ApiServerOptions {
  /** Made 0700 if absent, and locked; holds the objects, the credentials and the kubeconfig. */
  readonly dataDir: string;
  /** 0 takes the port of the last run if it is free, else any. */
  readonly port: number;
  readonly log: Logger;
  /** The time that is written on objects. */
  readonly now?: () => Date;
  readonly history?: HistoryLimits;
  /** How many events are kept; the oldest go first. */
  readonly eventsMax?: number;
  readonly bookmarkIntervalMs?: number;
  /** What can be made to go wrong; absent: nothing. */
  readonly faults?: FaultPlan;
  /** Reads what a container has printed; absent where no node keeps it. */
  readonly readLog?: ReadLog;
  /** Serves the fault knobs at /holdfast/faults. */
  readonly servesFaults?: boolean;
}

export interface ApiServer {
  readonly url: string;
  readonly kubeconfigPath: string;
  /** The same registry without the wire. */
  readonly api: ResourceApi;
  readonly registry: Registry;
  /** The version that the store stood at when it was opened, before anything was written in this run. */
  readonly openedAt: number;
  /** Forgets the change log, as an operator's compaction does. */
  compact(): void;
  stop(): Promise<void>;
}

/** Enough for a client to be away for minutes under load; past it, a watch answers 410 and the client lists again. */
const defaultHistory: HistoryLimits = { changes: 20_000, bytes: 128 * 1024 * 1024 };

/** Starts the API server over a data directory. Throws DataDirInUseError when another process holds it. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { dataDir, log, now = () => new Date() } = options;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const directory = join(dataDir, "api-server");
  const store = new ObjectStore(openDatabase(directory, dataDir), options.history ?? defaultHistory);
  const openedAt = store.revision;
  const core = startApiCore({ store, log, now, sweepsEvents: true, eventsMax: options.eventsMax });
  const { registry } = core;
  try {
    const credentials = await keepCredentials(directory, new Date()); // callers judge a certificate by their own clock
    const faults = options.faults ?? new FaultPlan();
    const listener = new ApiListener({
      registry,
      credentials,
      log,
      now,
      bookmarkIntervalMs: options.bookmarkIntervalMs ?? 60_000,
      faults,
      readLog: options.readLog,
      faultConsole: options.servesFaults === true ? new FaultConsole(faults) : undefined,
    });
    const port = await listenOnKeptPort(listener, options.port, join(directory, "port"), log);
    const url = `https://127.0.0.1:${port}`;
    const kubeconfigPath = join(dataDir, "kubeconfig");
    writePrivately(kubeconfigPath, kubeconfigText(url, credentials.cert, credentials.token));
    return {
      url,
      kubeconfigPath,
      api: core.api,
      registry,
      openedAt,
      compact: core.compact,
      stop: async () => {
        await listener.stop();
        core.close();
      },
    };
  } catch (error) {
    core.close();
    throw error;
  }
}

/** Takes the wished port, or with 0 the one of the last run, so that a kubeconfig in use stays valid. */
async function listenOnKeptPort(listener: ApiListener, wished: number, portFile: string, log: Logger): Promise<number> {
  const kept = wished === 0 ? readPort(portFile) : undefined;
  const port = await listener.listen(kept ?? wished).catch((error: unknown) => {
    if (kept === undefined || !isAddressInUse(error)) throw error;
    log.warn({ port: kept }, "the API server's last port is taken; another is used and the kubeconfig is rewritten");
    return listener.listen(0);
  });
  writePrivately(portFile, `${port}\n`);
  return port;
}

function readPort(path: string): number | undefined {
  try {
    const port = Number(readFileSync(path, "utf8"));
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
  } catch {
    return undefined; // the first run
  }
}

function isAddressInUse(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EADDRINUSE";
}
