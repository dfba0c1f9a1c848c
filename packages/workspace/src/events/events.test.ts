import { workspaceEventQueueMax } from "@holdfast/contract";
import { ManualClock } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import type { WorkspaceEvent } from "./workspace-event.ts";
import { WorkspaceEvents } from "./workspace-events.ts";

const never = new AbortController().signal;
const restart = (n: number): WorkspaceEvent => ({
  t: "container_restarted",
  sandboxUid: "sandbox" as never,
  previous: { podUid: "pod" as never, bootId: `boot-${n}` as never },
  current: { podUid: "pod" as never, bootId: `boot-${n + 1}` as never },
});

describe("L41 the events of a handle", () => {
  it("are heard in order by everyone who subscribed before, whenever they read", async () => {
    const events = new WorkspaceEvents(new ManualClock());
    using first = events.subscribe();
    events.publish(restart(1));
    using second = events.subscribe();
    events.publish(restart(2));
    expect(await first.next(never)).toMatchObject({ t: "event", sequence: 1 });
    expect(await first.next(never)).toMatchObject({ t: "event", sequence: 2 });
    expect(await second.next(never)).toMatchObject({ t: "event", sequence: 2, event: restart(2) });
  });

  it("wake whoever waits for one", async () => {
    const events = new WorkspaceEvents(new ManualClock());
    using listener = events.subscribe();
    const heard = listener.next(never);
    events.publish(restart(1));
    expect(await heard).toMatchObject({ sequence: 1 });
  });

  it("are bounded: a listener that does not read loses the oldest, and is told how many", async () => {
    const events = new WorkspaceEvents(new ManualClock());
    using listener = events.subscribe();
    for (let n = 0; n < workspaceEventQueueMax + 3; n += 1) events.publish(restart(n));
    expect(await listener.next(never)).toEqual({ t: "gap", missed: 3 });
    expect(await listener.next(never)).toMatchObject({ t: "event", sequence: 4 });
  });

  it("are not waited for longer than the signal allows, and nothing is kept for who has left", async () => {
    const events = new WorkspaceEvents(new ManualClock());
    const listener = events.subscribe();
    const gone = new AbortController();
    const heard = listener.next(gone.signal);
    gone.abort(new Error("gone"));
    await expect(heard).rejects.toThrow("gone");
    listener[Symbol.dispose]();
    expect(events.size).toBe(0);
  });
});
