import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { podJson, sandboxJson, templateJson, uid } from "../testing/fixtures.ts";
import { diskVerdict } from "./disk.ts";
import { ObjectUnreadable } from "./json.ts";
import { isOwnedBy, readPodObject } from "./pod.ts";
import { readSandboxObject } from "./sandbox.ts";
import { Blueprint, readTemplateObject } from "./template.ts";

const read = (changes: Parameters<typeof sandboxJson>[0] = {}) => readSandboxObject(sandboxJson(changes), "block");

describe("a Sandbox", () => {
  it("is read whole", () => {
    expect(read()).toStrictEqual({
      name: "namzu-ws-one",
      uid,
      resourceVersion: "41",
      generation: 3,
      observedGeneration: 3,
      mode: "Running",
      lacks: { annotations: false, mode: false },
      deleting: false,
      createdAt: new Date("2026-01-02T03:04:05Z"),
      stamps: {
        holderEpoch: "3",
        modeChangedAt: "2026-01-02T03:04:05.678Z",
        podTemplateHash: "sha256:aa",
        createdBy: "call-0",
        writtenBy: "call-1",
        volumeClaimUids: undefined,
      },
      template: "standard",
      runtimeClassName: undefined,
      serviceHost: undefined,
      disk: { usable: true, root: "/home/me", entries: ["disk"] },
      claimTemplates: sandboxJson().spec.volumeClaimTemplates,
      shutdown: undefined,
    });
  });

  it("L15 says under which name its Service is reached, once the cluster does", () => {
    const status = { serviceFQDN: "namzu-ws-one.team-a.svc.cluster.local" };
    expect(read({ status }).serviceHost).toBe("namzu-ws-one.team-a.svc.cluster.local");
  });

  it("without a mode reads as Running, and says that it has none", () => {
    expect(read({ spec: { operatingMode: undefined } })).toMatchObject({
      mode: "Running",
      lacks: { annotations: false, mode: true },
    });
  });

  it("with a mode that nobody knows is unreadable, never Running", () => {
    expect(() => read({ spec: { operatingMode: "Hibernated" } })).toThrow(
      /spec\.operatingMode is not Running or Suspended/,
    );
  });

  it("without conditions has an observed generation of 0", () => {
    expect(read({ status: { conditions: undefined } }).observedGeneration).toBe(0);
    expect(read({ status: { conditions: "none" } }).observedGeneration).toBe(0);
    const many = Array.from({ length: 400_000 }, (_, at) => ({ observedGeneration: at }));
    expect(read({ status: { conditions: many } }).observedGeneration).toBe(399_999);
  });

  it("says that it may delete its disk by itself", () => {
    const spec = { shutdownTime: "2026-02-01T00:00:00Z", shutdownPolicy: "Delete" };
    expect(read({ spec }).shutdown).toEqual({ time: "2026-02-01T00:00:00Z", policy: "Delete" });
    expect(read({ spec: { shutdownPolicy: "Retain" } }).shutdown).toBeUndefined();
  });

  it("shows an annotation only when it was sent", () => {
    expect(read({ metadata: { annotations: {} } }).stamps.writtenBy).toBeUndefined();
    expect(read({ metadata: { annotations: undefined } }).lacks).toEqual({ annotations: true, mode: false });
  });

  it.each([
    ["its uid", { metadata: { uid: undefined } }, "metadata.uid"],
    ["its version", { metadata: { resourceVersion: 7 } }, "metadata.resourceVersion"],
    ["its generation", { metadata: { generation: "3" } }, "metadata.generation"],
    [
      "a stamp",
      { metadata: { annotations: { "holdfast.dev/written-by": 7 } } },
      "metadata.annotations[holdfast.dev/written-by]",
    ],
    ["its time", { metadata: { creationTimestamp: "soon" } }, "metadata.creationTimestamp"],
  ])("is unreadable, and says where, when %s cannot be read", (_what, changes, path) => {
    expect(() => read(changes)).toThrow(path);
  });
});

describe("L10 a disk", () => {
  const container = (more: object) => ({ spec: { containers: [{ name: "agent", ...more }] } });
  const block = (name: string | undefined) => ({ metadata: { name }, spec: { volumeMode: "Block" } });
  const devices = (...names: string[]) => ({ volumeDevices: names.map((name) => ({ name, devicePath: "/dev/x" })) });
  const mounts = (name: string, mountPath: string) => ({ volumeMounts: [{ name, mountPath }] });

  it("is usable as a Block device of a container", () => {
    expect(diskVerdict(container(devices("disk")), [block("disk")], "block")).toEqual({
      usable: true,
      root: "/workspace",
      entries: ["disk"],
    });
  });

  it("may be several", () => {
    const verdict = diskVerdict(container(devices("a", "b")), [block("a"), block("b")], "block");
    expect(verdict).toMatchObject({ usable: true, entries: ["a", "b"] });
  });

  it.each([
    ["there is none", container({}), [], "no volumeClaimTemplates", []],
    ["it has no name", container(devices("disk")), [block(undefined)], "has no name", []],
    ["two have one name", container(devices("a")), [block("a"), block("a")], "same name", ["a"]],
    [
      "it is a Filesystem",
      container(devices("a")),
      [{ metadata: { name: "a" }, spec: { volumeMode: "Filesystem" } }],
      "virtio-fs",
      ["a"],
    ],
    [
      "it does not say what it is",
      container(devices("a")),
      [{ metadata: { name: "a" }, spec: {} }],
      "not Block",
      ["a"],
    ],
    ["nobody uses it", container({}), [block("a")], "no container has it in volumeDevices", ["a"]],
    ["it is mounted too", container({ ...devices("a"), ...mounts("a", "/x") }), [block("a")], "volumeMounts", ["a"]],
    ["one of two is unused", container(devices("a")), [block("a"), block("b")], "b: no container", ["b"]],
  ])("is unusable when %s", (_what, podTemplate, claims, why, names) => {
    expect(diskVerdict(podTemplate, claims, "block")).toEqual({
      usable: false,
      why: expect.stringContaining(why),
      claims: names,
    });
  });

  it("mounted by an init container is unusable", () => {
    const podTemplate = { spec: { containers: [devices("a")], initContainers: [mounts("a", "/x")] } };
    expect(diskVerdict(podTemplate, [block("a")], "block")).toMatchObject({ usable: false, claims: ["a"] });
  });

  it("of a service that accepts Filesystem is usable where it is mounted, and its root is the mount path", () => {
    const claim = { metadata: { name: "a" }, spec: {} };
    const verdict = diskVerdict(container(mounts("a", "/data")), [claim], "filesystem");
    expect(verdict).toEqual({ usable: true, root: "/data", entries: ["a"] });
    expect(diskVerdict(container(devices("a")), [block("a")], "filesystem")).toMatchObject({ usable: true });
    expect(diskVerdict(container({}), [claim], "filesystem")).toMatchObject({ usable: false, claims: ["a"] });
  });
});

describe("a pod", () => {
  it("is read whole", () => {
    expect(readPodObject(podJson())).toStrictEqual({
      name: "namzu-ws-one",
      uid: "pod-uid-1",
      resourceVersion: "50",
      ip: "10.0.0.7",
      phase: "Running",
      ready: true,
      deleting: false,
      gracePeriodSeconds: 30,
      node: "node-1",
      image: "agent:1",
      restartCount: 0,
      lastTermination: undefined,
      termination: undefined,
      problem: undefined,
    });
  });

  it("that is new has no address yet and is not ready", () => {
    expect(readPodObject({ metadata: { name: "p", uid: "u", resourceVersion: "1" } })).toMatchObject({
      ip: undefined,
      phase: "Unknown",
      ready: false,
      image: "",
    });
  });

  it("is owned by a uid, not by a name", () => {
    expect(isOwnedBy(podJson(), uid)).toBe(true);
    expect(isOwnedBy(podJson(), "namzu-ws-one")).toBe(false);
    expect(isOwnedBy({ metadata: {} }, uid)).toBe(false);
  });

  const waiting = (reason: string, lastReason?: string) => ({
    containerStatuses: [
      {
        name: "agent",
        state: { waiting: { reason, message: "because" } },
        lastState: lastReason === undefined ? {} : { terminated: { reason: lastReason, exitCode: 137 } },
      },
    ],
  });

  it.each([
    [
      "unschedulable: 0/3 nodes",
      { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes" }] },
    ],
    [
      "unschedulable (SchedulingGated): gated",
      { conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated", message: "gated" }] },
    ],
    ["image pull: because", waiting("ErrImagePull")],
    ["image pull: because", waiting("ImagePullBackOff")],
    ["crash loop: because", waiting("CrashLoopBackOff", "Error")],
    ["out of memory", waiting("CrashLoopBackOff", "OOMKilled")],
    [
      "out of memory",
      { containerStatuses: [{ name: "agent", state: { terminated: { reason: "OOMKilled", exitCode: 137 } } }] },
    ],
    ["container: because", waiting("CreateContainerConfigError")],
    ["evicted: disk pressure", { phase: "Failed", reason: "Evicted", message: "disk pressure" }],
    [undefined, waiting("ContainerCreating")],
    [undefined, waiting("constructor")],
  ])("says %s", (problem, status) => {
    expect(readPodObject(podJson({ status: { conditions: [], ...status } })).problem).toBe(problem);
  });

  it("says how it last ended", () => {
    const terminated = { reason: "Error", exitCode: 1, finishedAt: "2026-01-01T00:00:00Z" };
    const status = {
      containerStatuses: [{ name: "agent", restartCount: 2, state: { running: {} }, lastState: { terminated } }],
    };
    expect(readPodObject(podJson({ status }))).toMatchObject({
      restartCount: 2,
      lastTermination: "Error, exit 1 at 2026-01-01T00:00:00Z",
      termination: { reason: "Error", exitCode: 1, finishedAt: new Date("2026-01-01T00:00:00Z") },
    });
  });

  it.each([
    ["nothing", {}, [undefined, undefined, undefined]],
    ["a clean end", { reason: "Completed", exitCode: 0 }, ["Completed", 0, undefined]],
    ["a null time, as of an end that nobody saw", { exitCode: 137, finishedAt: null }, [undefined, 137, undefined]],
    ["what is no time and no number", { exitCode: "137", finishedAt: "soon" }, [undefined, undefined, undefined]],
    ["a code that is none", { exitCode: 2 ** 40 }, [undefined, undefined, undefined]],
  ])("that ended tells of its end what the cluster says, and makes nothing up: %s", (_, terminated, known) => {
    const status = { containerStatuses: [{ name: "agent", state: { terminated } }] };
    const [reason, exitCode, finishedAt] = known;
    expect(readPodObject(podJson({ status })).termination).toStrictEqual({ reason, exitCode, finishedAt });
  });
});

describe("a template", () => {
  it("keeps its pod template and claims as they are", () => {
    const { blueprint, disk, name } = readTemplateObject(templateJson(), "block");
    expect(name).toBe("standard");
    expect(disk).toMatchObject({ usable: true });
    const { podTemplate, volumeClaimTemplates } = templateJson().spec;
    expect(blueprint).toEqual(new Blueprint(podTemplate, volumeClaimTemplates));
  });

  it("without a pod template is unreadable", () => {
    expect(() => readTemplateObject({ metadata: { name: "t" }, spec: {} }, "block")).toThrow(ObjectUnreadable);
  });
});

describe("whatever a server sends", () => {
  const keys = fc.constantFrom(
    "metadata",
    "spec",
    "status",
    "name",
    "uid",
    "resourceVersion",
    "generation",
    "annotations",
    "labels",
    "podTemplate",
    "volumeClaimTemplates",
    "containers",
    "conditions",
    "type",
    "operatingMode",
    "ownerReferences",
    "containerStatuses",
    "state",
    "waiting",
    "reason",
    "volumeMode",
    "volumeDevices",
    "env",
    "__proto__",
    "constructor",
  );
  const { odd } = fc.letrec((tie) => ({
    odd: fc.oneof(
      { depthSize: "medium" },
      fc.constantFrom(null, true, 0, 1.5, "", "Running", "Block", "2026-01-01T00:00:00Z"),
      fc.array(tie("odd"), { maxLength: 3 }),
      fc.dictionary(keys, tie("odd"), { maxKeys: 5 }),
    ),
  }));
  const asSent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  const readers: readonly [string, (value: unknown) => unknown][] = [
    ["Sandbox", (value) => readSandboxObject(value, "block")],
    ["Pod", readPodObject],
    ["SandboxTemplate", (value) => readTemplateObject(value, "filesystem")],
  ];

  it.each(readers)("a %s is read or said to be unreadable", (_kind, reader) => {
    fc.assert(
      fc.property(odd, (value) => {
        expectReadOrUnreadable(() => reader(asSent(value)));
      }),
      { numRuns: 500 },
    );
  });

  it("and so is a good object with odd members", () => {
    fc.assert(
      fc.property(odd, odd, odd, (metadata, spec, status) => {
        const parts = asSent({ metadata, spec, status }) as { metadata: object; spec: object; status: object };
        const base = { annotations: parts.metadata, labels: parts.metadata, ownerReferences: parts.metadata };
        expectReadOrUnreadable(() =>
          readSandboxObject(
            sandboxJson({
              metadata: base,
              spec: { podTemplate: parts.spec, volumeClaimTemplates: parts.metadata },
              status: { conditions: parts.status },
            }),
            "block",
          ),
        );
        expect(
          readPodObject(podJson({ metadata: base, spec: { containers: parts.spec }, status: parts.status })).uid,
        ).toBe("pod-uid-1");
      }),
      { numRuns: 500 },
    );
  });

  function expectReadOrUnreadable(read: () => unknown): void {
    try {
      read();
    } catch (error) {
      expect(error).toBeInstanceOf(ObjectUnreadable);
    }
  }
});
