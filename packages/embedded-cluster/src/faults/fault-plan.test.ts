import { describe, expect, it } from "vitest";
import { FaultPlan } from "./fault-plan.ts";
import type { FaultedRequest } from "./fault-rule.ts";

const request = (more: Partial<FaultedRequest> = {}): FaultedRequest => ({
  by: "client",
  verb: "patch",
  resource: "sandboxes",
  namespace: "default",
  name: "a",
  subresource: "",
  ...more,
});

describe("a fault plan", () => {
  it("decides by the first rule that matches and is not used up", async () => {
    const plan = new FaultPlan();
    plan.add({ match: { name: "b" }, action: { t: "fail", code: 500 } });
    plan.add({ match: { verb: ["patch", "create"] }, action: { t: "fail", code: 503 }, after: 1, count: 1 });
    plan.add({ match: { resource: "sandboxes" }, action: { t: "applyThenDrop", loss: "timeout" } });
    expect(plan.decide(request({ resource: "pods", verb: "get" }))).toBeUndefined();
    expect(await plan.decide(request())).toEqual({ t: "applyThenDrop", loss: "timeout" }); // the second lets one pass
    expect(await plan.decide(request())).toMatchObject({ t: "fail", error: { code: 503 } });
    expect(await plan.decide(request())).toEqual({ t: "applyThenDrop", loss: "timeout" });
    expect(await plan.decide(request({ name: "b" }))).toMatchObject({ t: "fail", error: { code: 500 } });
    expect(plan.list().map(({ met }) => met)).toEqual([1, 1, 2]);
  });

  it("holds one request each, in the order of the gates, and keeps nothing of them", async () => {
    const plan = new FaultPlan();
    const [first, second] = [plan.hold({ verb: "patch" }), plan.hold({ verb: "patch" })];
    const fates = [plan.decide(request({ name: "1" })), plan.decide(request({ name: "2" }))];
    expect([(await first.reached).name, (await second.reached).name]).toEqual(["1", "2"]);
    second.drop();
    first.pass();
    expect(await Promise.all(fates)).toEqual([{ t: "continue" }, { t: "dropUnapplied", loss: "cut" }]);
    expect(plan.list()).toEqual([]);
    expect(plan.isIdle).toBe(true);
    expect(plan.decide(request())).toBeUndefined();
  });

  it("lets go, when it is cleared, what waits and was not decided", async () => {
    const plan = new FaultPlan();
    const held = plan.hold();
    const fate = plan.decide(request());
    const rule = plan.add({ match: {}, action: { t: "hold" } });
    const ruled = plan.decide(request());
    const late = plan.late();
    rule.remove();
    expect(await ruled).toEqual({ t: "continue" });
    const lost = await plan.decide(request());
    plan.clear();
    expect(await fate).toEqual({ t: "continue" });
    expect(() => held.fail(500)).toThrow("decided already");
    if (lost?.t !== "applyLate") throw new Error("not late");
    expect(await lost.later.due).toBe(true);
    expect(() => late.lose()).toThrow("decided already");
  });

  it("tells whoever waits for a late request that none came", async () => {
    const plan = new FaultPlan();
    const landing = plan.late({ name: "nobody" }).land();
    plan.clear();
    expect(await landing).toMatchObject({ code: 0 });
  });

  it("stops with nobody waiting, delays and node rules included", async () => {
    const plan = new FaultPlan();
    plan.add({ match: {}, action: { t: "delay", ms: 1e9 } });
    const delayed = plan.decide(request());
    plan.node.holdScheduling();
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" } };
    const said: string[] = [];
    const scheduling = plan.node.beforeScheduling(pod, (why) => said.push(why), new AbortController().signal);
    expect(plan.list()).toHaveLength(2);
    plan.stop();
    expect(await delayed).toEqual({ t: "continue" });
    await scheduling;
    expect(said).toEqual([expect.stringContaining("a fault rule refuses this pod")]);
    expect(plan.list()).toEqual([]);
  });

  it("counts what comes while it is asked to", () => {
    const plan = new FaultPlan();
    const record = plan.record({ by: "client" });
    plan.decide(request());
    plan.decide(request({ by: "node" }));
    record.stop();
    plan.decide(request());
    expect(record.requests).toEqual([request()]);
  });
});
