import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Deadline, systemClock } from "@holdfast/async";
import type { WorkspaceId } from "@holdfast/contract";
import { HttpResourceApi, type KubeObject, readKubeconfig } from "@holdfast/embedded-cluster";
import { connectKube, type KubeCluster } from "@holdfast/kube";
import type { SandboxReading, TemplateReading, WriteEnding } from "@holdfast/workspace";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleGuestAgent } from "../../services/guest-agent/bundle.ts";
import { eventually, processesNaming } from "../whole/harness.ts";
import type { Measure } from "./cluster-host.ts";
import { controlGroups, descendantsOf, descriptorsOf, memoryOf, mountsOf, nodeFolders, peakOf } from "./counts.ts";
import { isReady, PodsSeen } from "./pods-seen.ts";

/** HOLDFAST_WORKSPACES=500 is the whole of it; what runs with all other tests is shorter. */
const count = Number(process.env.HOLDFAST_WORKSPACES ?? 60);
/** The others run a stand-in program: a hundred real agents are what a machine bears. */
const real = Math.min(100, Math.ceil(count / 5));
/** Requests on their way at once: a client has only so much patience for each. */
const atOnce = 16;
const patienceMs = 120_000 + count * 1_500;

const kinds = {
  sandboxes: { group: "agents.x-k8s.io", version: "v1beta1", plural: "sandboxes" },
  pods: { group: "", version: "v1", plural: "pods" },
  services: { group: "", version: "v1", plural: "services" },
  claims: { group: "", version: "v1", plural: "persistentvolumeclaims" },
  templates: { group: "extensions.agents.x-k8s.io", version: "v1beta1", plural: "sandboxtemplates" },
  secrets: { group: "", version: "v1", plural: "secrets" },
  nodes: { group: "", version: "v1", plural: "nodes" },
} as const;
const events = { group: "", version: "v1", plural: "events" };

interface Workspace {
  readonly id: string;
  readonly template: "default" | "stand-in";
  reading: SandboxReading;
}

let dataDir: string;
let host: ChildProcess;
let pid: number;
let api: HttpResourceApi;
let cluster: KubeCluster;
let seen: PodsSeen;
const templates = new Map<string, TemplateReading>();

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "holdfast-many-"));
  const { directory, entry } = await bundleGuestAgent();
  const program = join(import.meta.dirname, "cluster-host.ts");
  const flags = ["--expose-gc", "--disable-warning=ExperimentalWarning"];
  host = spawn(process.execPath, [...flags, program, join(dataDir, "data"), directory, basename(entry)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ready = Promise.race([
    once(host, "message"),
    once(host, "exit").then(([code]) => Promise.reject(new Error(`the cluster ended with ${code}`))),
  ]);
  const [{ kubeconfigPath }] = (await ready) as [{ kubeconfigPath: string }];
  pid = host.pid ?? 0;
  kubeconfig = kubeconfigPath;
  await connect();
  const stored = await api.get({ resource: kinds.templates, namespace: "default", name: "default" });
  await api.create(kinds.templates, "default", standInOf(stored));
});
afterAll(async () => {
  await disconnect();
  host.send("stop");
  if (host.exitCode === null) await once(host, "exit");
  expect(await processesNaming(dataDir)).toEqual([]);
  await rm(dataDir, { recursive: true, force: true });
});

let kubeconfig: string;
async function connect(): Promise<void> {
  api = new HttpResourceApi(readKubeconfig(kubeconfig));
  const access = { kubeconfigPath: kubeconfig };
  const say = () => undefined;
  const log = { info: say, warn: say, error: say };
  // A busy machine is late, not wrong.
  cluster = await connectKube({ access, disk: "filesystem", log, requestTimeoutMs: 60_000 });
  seen = await PodsSeen.start(api);
}

async function disconnect(): Promise<void> {
  await seen.stop();
  await cluster.close();
  api.close();
}

/** A template whose container only stays, in next to no memory. */
function standInOf(template: KubeObject): KubeObject {
  const spec = structuredClone(template.spec) as { podTemplate: { spec: { containers: Record<string, unknown>[] } } };
  const [container] = spec.podTemplate.spec.containers;
  if (container === undefined) throw new Error("the default template has no container");
  const staying = "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done";
  const resources = { limits: { memory: "128Mi" } };
  Object.assign(container, { command: ["/bin/sh", "-c", staying], resources });
  delete container.readinessProbe;
  const { apiVersion, kind } = template;
  return { apiVersion, kind, metadata: { name: "stand-in", namespace: "default" }, spec };
}

const limited = limitTo(atOnce);
const within = () => new Deadline(systemClock, patienceMs);

async function create(id: string, template: Workspace["template"]): Promise<Workspace> {
  const wish = { id: id as WorkspaceId, template: await templateOf(template), createdBy: "test", writtenBy: id };
  const ending = await limited(async () => {
    using limit = within();
    return await cluster.createSandbox(wish, limit);
  });
  if (ending.t !== "applied") throw new Error(`${id} was not created: ${JSON.stringify(ending)}`);
  await seen.until(ending.value.name, isReady);
  return { id, template, reading: ending.value };
}

async function setMode(workspace: Workspace, mode: "Running" | "Suspended"): Promise<void> {
  workspace.reading = await untilApplied(workspace, (reading, limit) =>
    cluster.setMode({ reading, mode, writtenBy: randomUUID(), volumeClaimUids: undefined, now: Date.now() }, limit),
  );
  await seen.until(workspace.reading.name, mode === "Running" ? isReady : (pod) => pod === undefined);
}

async function destroy(workspace: Workspace): Promise<void> {
  await untilApplied(workspace, ({ name, uid, resourceVersion }, limit) =>
    cluster.deleteSandbox({ name, uid, resourceVersion }, limit),
  );
  await seen.until(workspace.reading.name, (pod) => pod === undefined);
}

/** As the product writes: under what it has just read, and again where somebody else wrote meanwhile. */
async function untilApplied<Value>(
  { reading: { name } }: Workspace,
  write: (reading: SandboxReading, limit: Deadline) => Promise<WriteEnding<Value>>,
): Promise<Value> {
  for (;;) {
    const ending = await limited(async () => {
      using limit = within();
      const reading = await cluster.readSandbox(name, limit);
      if (reading === undefined) throw new Error(`${name} is not there`);
      return await write(reading, limit);
    });
    if (ending.t === "applied") return ending.value;
    if (ending.t !== "refused" || ending.why !== "condition") throw new Error(`${name}: ${JSON.stringify(ending)}`);
  }
}

async function templateOf(name: string): Promise<TemplateReading> {
  using limit = within();
  const known = templates.get(name) ?? (await cluster.readTemplate(name, limit));
  templates.set(name, known);
  return known;
}

async function objects(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [kind, resource] of Object.entries(kinds)) counts[kind] = (await api.list(resource)).items.length;
  return counts;
}

async function measure(): Promise<Measure> {
  host.send("measure");
  const [answer] = (await once(host, "message")) as [Measure];
  return answer;
}

/** What must be the same when everything is gone again. Nobody is connected meanwhile. */
async function holdings() {
  await disconnect();
  await eventually(10_000, async () => ((await measure()).handles.TCPSocketWrap ?? 0) === 0 || undefined);
  const { handles, heapMiB } = await measure();
  const held = {
    processes: await descendantsOf(pid),
    handles,
    descriptors: await descriptorsOf(pid),
    mounts: await mountsOf(pid),
    groups: await controlGroups(join(dataDir, "data")),
  };
  await connect();
  const folders = await nodeFolders(join(dataDir, "data"));
  return { held: { ...held, objects: await objects(), folders }, heapMiB };
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
async function timed(what: string, run: () => Promise<unknown>): Promise<void> {
  const startedAt = performance.now();
  await run();
  const seconds = (performance.now() - startedAt) / 1000;
  say(`${what}: ${seconds.toFixed(1)} s, ${((seconds * 1000) / count).toFixed(0)} ms each`);
}

describe(`${count} workspaces, ${real} of them with the real agent`, () => {
  it(
    "are created, suspended, resumed and deleted in parallel, and nothing of them is left",
    async () => {
      // What is loaded and allocated once, at a first use, is not what workspaces leave.
      const warm = await Promise.all([create("warm-0", "default"), create("warm-1", "stand-in")]);
      await Promise.all(warm.map((workspace) => setMode(workspace, "Suspended")));
      await Promise.all(warm.map(destroy));
      await eventually(patienceMs, async () => ((await objects()).claims === 0 && (await empty())) || undefined);
      const before = await holdings();
      const mounts = await mountsOf(process.pid);

      let all: Workspace[] = [];
      await timed(`${count} created until Ready`, async () => {
        const wishes = Array.from({ length: count }, (_, at) =>
          create(`many-${at}`, isReal(at) ? "default" : "stand-in"),
        );
        all = await Promise.all(wishes);
      });
      expect(all.filter(({ template }) => template === "default")).toHaveLength(real);
      const running = await descendantsOf(pid);
      expect(running.length).toBeGreaterThanOrEqual(3 * count); // launcher, PID 1, command
      expect(await objects()).toEqual({
        ...before.held.objects,
        sandboxes: count,
        pods: count,
        services: count,
        claims: count,
      });
      const limited = (await controlGroups(join(dataDir, "data"))).length;
      expect(limited).toBe((await enforcesMemory()) ? count - real : 0);
      const { rssMiB, heapMiB } = await measure();
      const ofPods = await memoryOf(running);
      const descriptors = sum(await descriptorsOf(pid)) - sum(before.held.descriptors);
      say(
        `running: the cluster ${rssMiB.toFixed(0)} MiB, heap ${heapMiB.toFixed(1)} MiB (${(((heapMiB - before.heapMiB) * 1024) / count).toFixed(0)} KiB a pod), ${(descriptors / count).toFixed(1)} descriptors a pod; ${running.length} processes of pods ${ofPods.toFixed(0)} MiB`,
      );

      await timed("suspended until the pods are gone", () => Promise.all(all.map((it) => setMode(it, "Suspended"))));
      expect(await descendantsOf(pid)).toEqual([]);
      const asleep = { ...before.held.objects, sandboxes: count, services: count, claims: count };
      expect(await objects()).toEqual(asleep);
      expect(await nodeFolders(join(dataDir, "data"))).toEqual({ pods: 0, logs: 0, volumes: 2 * count, trash: 0 }); // a disk and its record

      await timed("resumed until Ready", () => Promise.all(all.map((it) => setMode(it, "Running"))));
      await timed("deleted until the pods are gone", () => Promise.all(all.map(destroy)));
      await timed("and their disks", () => eventually(patienceMs, async () => (await empty()) || undefined));
      // What is on its way out may take a moment; what was left behind stays.
      const held = async () => (await holdings()).held;
      await expect.poll(held, { timeout: 30_000, interval: 500 }).toEqual(before.held);
      const after = await holdings();
      expect(await mountsOf(process.pid)).toBe(mounts);
      expect((await api.list(events)).items.length).toBeLessThanOrEqual(500); // the node keeps no more
      say(
        `left: heap ${after.heapMiB.toFixed(1)} MiB (before ${before.heapMiB.toFixed(1)}); the cluster had ${(await peakOf(pid)).toFixed(0)} MiB at most`,
      );
    },
    patienceMs * 2,
  );
});

/** The real ones are spread among the others. */
function isReal(at: number): boolean {
  return Math.floor(((at + 1) * real) / count) > Math.floor((at * real) / count);
}

/** Whether the node's own words leave limits of memory out of what it does not enforce. */
async function enforcesMemory(): Promise<boolean> {
  const [node] = (await api.list(kinds.nodes)).items;
  const said = node?.metadata.annotations?.["node.holdfast.dev/relaxations"] ?? "";
  return !/Limits of [^.]*memory/.test(said);
}

async function empty(): Promise<boolean> {
  const { sandboxes, pods, services, claims } = await objects();
  const { volumes, trash } = await nodeFolders(join(dataDir, "data"));
  return [sandboxes, pods, services, claims, volumes, trash].every((left) => left === 0);
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, some) => all + some, 0);
}

/** Lets at most so many run at once. */
function limitTo(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let free = most;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
