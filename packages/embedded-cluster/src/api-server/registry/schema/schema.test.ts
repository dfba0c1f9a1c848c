import { describe, expect, it } from "vitest";
import { isObject, objectIn } from "../../../json.ts";
import { conform } from "./conform.ts";
import { readKindSchema } from "./structural-schema.ts";
import { violations } from "./violations.ts";

const { spec: schema, status: statusSchema = {} } = readKindSchema("sandbox.json");
const container = { name: "agent", image: "x" };
const withPod = (podSpec: object) => ({ podTemplate: { spec: { containers: [container], ...podSpec } } });
const podOf = (spec: unknown) => objectIn(objectIn(spec, "podTemplate"), "spec");
const wrong = (spec: unknown) =>
  violations(schema, conform(schema, spec), "spec").map(({ field, message }) => `${field}: ${message}`);

describe("conforming to the Sandbox's schema", () => {
  it("drops what the schema does not know, at every depth, in silence", () => {
    const conformed = conform(schema, {
      ...withPod({ containers: [{ ...container, imagge: "typo" }], typo: 1 }),
      podTemplate: { metadata: { name: "n", labels: { kept: "1" } }, spec: { containers: [container], typo: 1 } },
      replicas: 1,
    });
    expect(conformed).toEqual({
      operatingMode: "Running",
      shutdownPolicy: "Retain",
      podTemplate: { metadata: { labels: { kept: "1" } }, spec: { containers: [container] } },
    });
  });

  it("fills in defaults inside the pod's spec, and leaves what was given", () => {
    const ports = [{ containerPort: 1024 }, { containerPort: 53, protocol: "UDP" }];
    const conformed = podOf(conform(schema, withPod({ containers: [{ ...container, ports }] })));
    expect(conformed?.containers).toEqual([
      {
        ...container,
        ports: [
          { containerPort: 1024, protocol: "TCP" },
          { containerPort: 53, protocol: "UDP" },
        ],
      },
    ]);
  });

  it("takes a null for an absent member where there is a default", () => {
    expect(conform(schema, { ...withPod({}), operatingMode: null })).toMatchObject({ operatingMode: "Running" });
  });

  it("does not change its input, and changes nothing the second time", () => {
    const input = Object.freeze(withPod({ volumes: [{ name: "v", emptyDir: {} }] }));
    const once = conform(schema, input);
    expect(conform(schema, once)).toEqual(once);
    expect(isObject(once) && "operatingMode" in input).toBe(false);
  });
});

describe("the Sandbox's schema", () => {
  it("takes an ordinary spec, quantities and ports as integers or strings", () => {
    const claims = [
      {
        metadata: { name: "w" },
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "10Gi" } } },
      },
    ];
    const readinessProbe = { httpGet: { port: "http" }, periodSeconds: 10 };
    const resources = { limits: { cpu: 2, memory: "1.5Gi" } };
    expect(
      wrong({
        ...withPod({ containers: [{ ...container, readinessProbe, resources }] }),
        volumeClaimTemplates: claims,
        service: true,
      }),
    ).toEqual([]);
  });

  it.each([
    [{}, "spec.podTemplate: Required value"],
    [{ podTemplate: { spec: {} } }, "spec.podTemplate.spec.containers: Required value"],
    [
      { ...withPod({}), service: "yes" },
      'spec.service: Invalid value: "string": spec.service in body must be of type boolean: "string"',
    ],
    [
      { ...withPod({}), operatingMode: "Asleep" },
      'spec.operatingMode: Unsupported value: "Asleep": supported values: "Running", "Suspended"',
    ],
    [
      { ...withPod({}), shutdownTime: "tomorrow" },
      'spec.shutdownTime: Invalid value: "tomorrow": spec.shutdownTime in body must be of type date-time: "tomorrow"',
    ],
    [
      withPod({ terminationGracePeriodSeconds: "30" }),
      'spec.podTemplate.spec.terminationGracePeriodSeconds: Invalid value: "string": spec.podTemplate.spec.terminationGracePeriodSeconds in body must be of type integer: "string"',
    ],
    [
      withPod({ containers: [container, container] }),
      'spec.podTemplate.spec.containers[1]: Duplicate value: {"name":"agent"}',
    ],
    [
      { ...withPod({}), volumeClaimTemplates: [{ metadata: { name: "w" } }] },
      "spec.volumeClaimTemplates[0].spec: Required value",
    ],
  ])("refuses %j", (spec, message) => {
    expect(wrong(spec)).toContain(message);
  });

  it("refuses a quantity that is none", () => {
    const resources = { limits: { cpu: "many" } };
    expect(wrong(withPod({ containers: [{ ...container, resources }] })).join()).toContain("should match '");
  });

  it("wants whole conditions in the status, with a reason that is a word", () => {
    const at = "2030-01-01T00:00:00Z";
    const condition = {
      type: "Ready",
      status: "True",
      reason: "DependenciesReady",
      message: "",
      lastTransitionTime: at,
    };
    const of = (item: object) => violations(statusSchema, { conditions: [item] }, "status").map(({ field }) => field);
    expect(of(condition)).toEqual([]);
    expect(of({ ...condition, reason: "two words" })).toEqual(["status.conditions[0].reason"]);
    expect(of({ type: "Ready" })).toHaveLength(4);
  });
});
