import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../clock.ts";
import { NodeFaultRules } from "../../faults/node-fault-rules.ts";
import { stringIn } from "../../json.ts";
import { startStandInNode } from "../../memory/stand-in-node.ts";
import type { KubeObject, ResourceApi } from "../../resource-api.ts";
import { claims, pods, sandboxes } from "../../sandbox-controller/names.ts";
import { startSandboxController } from "../../sandbox-controller/sandbox-controller.ts";
import { startApiServer } from "../api-server.ts";
import { rulesOf } from "../registry/kinds/kind-rules.ts";
import { validateMetadata } from "../registry/metadata-rules.ts";
import { parse } from "../registry/object-text.ts";
import { resourceTypes } from "../resource-types.ts";
import { silent } from "../testing/test-server.ts";

let dataDir: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "holdfast-storm-"));
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

/** What the API had answered before the kill: the last word on each Sandbox, and the highest version. */
interface Told {
  readonly last: ReadonlyMap<string, { readonly verb: string; readonly uid: string }>;
  readonly version: number;
}

/** Storms a cluster in a process of its own and kills it once it has said this much. */
async function stormAndKill(life: number, lines: number): Promise<Told> {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, "../testing/storm.ts"), dataDir, String(life)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const last = new Map<string, { verb: string; uid: string }>();
  let version = 0;
  let count = 0;
  const ended = once(child, "exit");
  if (child.stdout === null) throw new Error("no output");
  for await (const line of createInterface({ input: child.stdout })) {
    const [verb = "", name = "", uid = "", at = ""] = line.split(" ");
    if (at === "") continue; // cut off by the kill
    last.set(name, { verb, uid });
    version = Math.max(version, Number(at));
    if (++count === lines) child.kill("SIGKILL");
  }
  await ended;
  expect(child.signalCode).toBe("SIGKILL");
  return { last, version };
}

async function until(isSo: () => Promise<string | undefined>): Promise<void> {
  await expect.poll(isSo, { timeout: 20_000, interval: 20 }).toBeUndefined();
}

const byName = (items: readonly KubeObject[]) => new Map(items.map((item) => [item.metadata.name, item]));

/** What is not yet at rest, or undefined: each Sandbox has what its mode asks for, and nothing is left of others. */
async function unrest(api: ResourceApi): Promise<string | undefined> {
  const [owners, podList, claimList] = await Promise.all(
    [sandboxes, pods, claims].map(async (resource) => (await api.list(resource, "default")).items),
  );
  const standing = byName(owners ?? []);
  for (const [name, sandbox] of standing) {
    if (sandbox.metadata.deletionTimestamp !== undefined) return `${name} is still being deleted`;
    const pod = (podList ?? []).find((item) => item.metadata.name === name);
    const isSuspended = stringIn(sandbox.spec, "operatingMode") === "Suspended";
    if (isSuspended && pod !== undefined) return `${name} is suspended and has a pod`;
    if (!isSuspended && stringIn(pod?.status, "phase") !== "Running") return `${name} has no running pod`;
    if (pod?.metadata.deletionTimestamp !== undefined) return `the pod of ${name} is going`;
    if (!(claimList ?? []).some((item) => item.metadata.name === `disk-${name}`)) return `${name} has no disk`;
  }
  const lost = [...(podList ?? []), ...(claimList ?? [])].find(
    ({ metadata }) => !metadata.ownerReferences?.some(({ name, uid }) => standing.get(name)?.metadata.uid === uid),
  );
  return lost === undefined ? undefined : `${lost.kind} ${lost.metadata.name} has lost its Sandbox`;
}

describe("a whole cluster whose process was killed in a storm", () => {
  it("stands as it once stood, goes on where it was, and comes to rest with nothing lost and nothing left", async () => {
    let before = 0;
    for (const [life, lines] of [30, 97, 171].entries()) {
      const told = await stormAndKill(life, lines);
      const server = await startApiServer({ dataDir, port: 0, log: silent });
      const { api, registry } = server;
      try {
        // Nothing that was answered is undone, and no version is given twice.
        expect(server.openedAt).toBeGreaterThanOrEqual(Math.max(told.version, before));
        const uids = new Set<string>();
        for (const type of resourceTypes) {
          for (const body of registry.list(type, undefined).bodies()) {
            const object = parse(body);
            expect([...validateMetadata(type, object), ...(rulesOf(type).validate?.(object, object) ?? [])]).toEqual(
              [],
            );
            expect(Number(object.metadata.resourceVersion)).toBeLessThanOrEqual(server.openedAt);
            expect(uids.has(object.metadata.uid ?? "")).toBe(false);
            uids.add(object.metadata.uid ?? "");
          }
        }
        const stood = byName((await api.list(sandboxes, "default")).items);
        for (const [name, { verb, uid }] of told.last) {
          const sandbox = stood.get(name);
          if (verb === "deleted")
            expect(sandbox === undefined || sandbox.metadata.deletionTimestamp !== undefined).toBe(true);
          if (verb === "deleted" || verb === "deleting") continue;
          expect(sandbox?.metadata.uid).toBe(uid);
          expect(sandbox?.metadata.deletionTimestamp).toBeUndefined();
        }

        const controller = await startSandboxController({ api, log: silent });
        const rules = new NodeFaultRules(systemClock);
        const node = await startStandInNode({ api, clock: systemClock, log: silent, rules, auto: true });
        try {
          await until(() => unrest(api));
          const rested = byName((await api.list(sandboxes, "default")).items);
          for (const [name, { verb }] of told.last) {
            if (verb !== "deleting") expect(rested.has(name)).toBe(verb !== "deleted");
          }
        } finally {
          await node.stop();
          await controller.stop();
        }
        before = registry.revision;
      } finally {
        await server.stop();
      }
    }
  }, 90_000);
});
