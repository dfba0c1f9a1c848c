import { bootIdOf, holderEpochFrom, podUidOf, sandboxUidOf } from "@holdfast/contract";
import { type Stage, stage, workspaceId } from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Handle } from "./handle.ts";
import type { BoundGuest } from "./workspace-state.ts";

let on: Stage;
let ws: Handle;
const [first, second] = [podUidOf("first"), podUidOf("second")];

beforeEach(() => {
  on = stage();
  ws = new Handle(workspaceId("demo"), on.deps);
  ws.commit({ t: "bound", bound: boundIn(first) });
});

function boundIn(uid: typeof first): BoundGuest {
  const guest = on.guests.guest({ host: "10.0.0.1", port: 1024, podUid: uid });
  const facts = { sandboxUid: sandboxUidOf("s"), features: [], bootId: bootIdOf("b"), fenced: holderEpochFrom(0) };
  return { guest, pod: { uid } as never, ...facts };
}

describe("news", () => {
  it.each([
    { t: "suspendedElsewhere", was: second },
    { t: "guestLost", was: second, why: "late" },
    { t: "vanished", was: second, why: "absent" },
    { t: "deletionSeen", was: undefined },
  ] as const)("of another pod than the one that is held is dropped: $t", (news) => {
    expect(ws.observe(news)).toBe(false);
    expect(ws.state.t).toBe("active");
  });

  it("of a rebind that another one overtook is dropped", () => {
    const moved = boundIn(second);
    expect(ws.observe({ t: "guestMoved", was: first, bound: moved })).toBe(true);
    expect(ws.observe({ t: "guestMoved", was: first, bound: boundIn(podUidOf("third")) })).toBe(false);
    expect(ws.state).toEqual({ t: "active", bound: moved });
  });

  it("that would end the handle is dropped while a recipe runs, which will see for itself", () => {
    ws.inTransition = true;
    expect(ws.observe({ t: "vanished", was: first, why: "absent" })).toBe(false);
    expect(ws.observe({ t: "deletionSeen", was: first })).toBe(false);
    expect(ws.state.t).toBe("active");
    ws.inTransition = false;
    expect(ws.observe({ t: "vanished", was: first, why: "absent" })).toBe(true);
    expect(ws.state.t).toBe("gone");
  });

  it("of a foreign suspend is taken while a suspend of ours is prepared, and is not taken back with it (L29)", () => {
    ws.inTransition = true;
    ws.commit({ t: "suspendBegan" });
    expect(ws.observe({ t: "suspendedElsewhere", was: first })).toBe(true);
    ws.commit({ t: "suspendRefused" });
    expect(ws.state.t).toBe("suspending");
  });

  it("is dropped in a state that holds no pod", () => {
    ws.commit({ t: "resumeBegan" });
    expect(ws.observe({ t: "suspendedElsewhere", was: undefined })).toBe(false);
    expect(ws.state.t).toBe("resuming");
  });
});

describe("a guest that is left", () => {
  it("is closed at once when no stream uses it, else after the last one, and at once when its pod is gone", () => {
    const { state } = ws;
    if (state.t !== "active") throw new Error("it is bound");
    const giveBack = ws.leases.take(state.bound.guest);
    ws.observe({ t: "guestMoved", was: first, bound: boundIn(second) });
    expect(on.guests.closed).toEqual([]);
    giveBack();
    giveBack();
    expect(on.guests.closed).toEqual([first]);

    ws.commit({ t: "suspendBegan" });
    ws.commit({ t: "suspendAccepted" });
    expect(on.guests.closed).toEqual([first]); // Its programs may still write while they end.
    ws.commit({ t: "podGone" });
    expect(on.guests.closed).toEqual([first, second]);
  });
});

describe("L22 the epoch that a guest confirmed", () => {
  const fenced = () => (ws.state.t === "active" ? ws.state.bound.fenced : undefined);

  it("is the bound guest's, and only rises; what a guest that was left confirms changes nothing", () => {
    const { state } = ws;
    if (state.t !== "active") throw new Error("it is bound");
    ws.noteFenced(state.bound, holderEpochFrom(5));
    expect(fenced()).toBe(5);
    ws.noteFenced(state.bound, holderEpochFrom(4));
    expect(fenced()).toBe(5);
    ws.observe({ t: "guestMoved", was: first, bound: boundIn(second) });
    ws.noteFenced(state.bound, holderEpochFrom(9));
    expect(fenced()).toBe(0);
  });
});

describe("L40 a boot id", () => {
  it("of a guest that was left changes nothing", () => {
    const { state } = ws;
    if (state.t !== "active") throw new Error("it is bound");
    ws.observe({ t: "guestMoved", was: first, bound: boundIn(second) });
    ws.noteBootId(state.bound, bootIdOf("stranger"));
    expect(ws.state).toMatchObject({ bound: { bootId: "b" } });
  });
});
