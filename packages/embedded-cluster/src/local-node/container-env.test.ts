import { describe, expect, it } from "vitest";
import { containerCallOf, expand } from "./container-env.ts";
import { planPod } from "./pod-plan.ts";
import { agentPod } from "./testing/cluster.ts";

const place = { nodeName: "n", podIp: "127.1.2.3", hostIp: "127.1.2.1" };
const callOf = (container: object) => {
  const pod = agentPod("p", container);
  const [plan] = planPod(pod).containers;
  if (plan === undefined) throw new Error("no container");
  return containerCallOf(pod, plan, place, ["/image/program", "/image/entry"]);
};

describe("expand", () => {
  it.each([
    ["$(A)", "1"],
    ["$$(A)", "$(A)"],
    ["$$$(A)", "$1"],
    ["$(NONE) $A $", "$(NONE) $A $"],
    ["x$(A)$(B)y", "x12y"],
  ])("makes of %s %s, as Kubernetes does", (text, expected) => {
    expect(
      expand(
        text,
        new Map([
          ["A", "1"],
          ["B", "2"],
        ]),
      ),
    ).toBe(expected);
  });
});

describe("the command of a container", () => {
  it("is the image's own where none is given", () => {
    expect(callOf({}).command).toEqual(["/image/program", "/image/entry"]);
  });
  it("has the image's own program with the given args", () => {
    expect(callOf({ args: ["--x"] }).command).toEqual(["/image/program", "/image/entry", "--x"]);
  });
  it("may name variables", () => {
    expect(callOf({ command: ["sh", "-c", "$(HOLDFAST_AGENT_HOST)"] }).command).toEqual(["sh", "-c", "127.1.2.3"]);
  });
  it("cannot be a program with = in its path", () => {
    expect(() => callOf({ command: ["/bin/a=b"] })).toThrow(/"="/);
  });
});
